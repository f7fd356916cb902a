"""What is wrong with the claims; or, of some pages, the sentences with a figure for which no claim stands.

python -m benchmarks.claims [README.md docs/results.md ...]
"""

import sys

from benchmarks.claims import ROOT, claims, problem, unclaimed


def main() -> int:
    found = claims()
    wrong = list(filter(None, map(problem, found)))
    print("\n".join([*wrong, f"{len(found)} claims, {len(wrong)} of them wrong"]))
    for page in sys.argv[1:]:
        stated = [claim.sentence() for claim in found if claim.page == page and problem(claim) is None]
        print("\n".join([f"\n{page}, sentences with a figure and without a claim:", *unclaimed(ROOT / page, stated)]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
