"""Damage to every kind of file and message, by the hundred thousand: see tests/fuzzing.py.

python -m benchmarks.fuzz --mutations 100000
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests"))


def main() -> None:
    from fuzzing import fuzz, specimens

    parser = argparse.ArgumentParser()
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = specimens(Path(folder))
        account = fuzz(found, given.mutations, given.seed)
    report = {"mutations": given.mutations, "specimens": len(found), **account.report()}
    print(json.dumps(report, indent=1))
    for violation in account.violations[:60]:
        print(violation)
    (HERE / "results" / "fuzz.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
