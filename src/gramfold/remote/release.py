"""When the sum of uploads may be released again: only with so many new ones that nobody can compute one site's from two releases.

What sites are sent of the sum gives it away, or much of it. Two sums that differ by one site differ by that site's moments. So a
release is of at least `release-sites` sites, and holds as many uploads that no release before it held; an upload that was taken
out counts like a new one.
"""

from collections.abc import Mapping
from pathlib import Path

from gramfold import wire
from gramfold.errors import ReleaseError

RELEASED = "released.json"
UPLOADS, SAMPLES = "uploads", "samples"
"""What it holds: ids of uploads by site, and for methods of several rounds whose samples were in a run."""


def check_first(sites: int, least: int) -> None:
    """Raise unless a sum of so many sites may be released."""
    if sites < least:
        raise ReleaseError(
            f"the sum of {sites} sites is not released: each of them could compute much of what the others sent, and "
            f"`release-sites` is {least}; wait for more sites, or, where all of them agree, set release-sites={max(sites, 1)}"
        )


def check_release(out: Path, counted: Mapping[str, str], least: int) -> None:
    """Raise unless the sum of these uploads, their ids by site, may be released after the last release; note that it was."""
    _check(out, UPLOADS, counted, least)


def check_run(out: Path, samples: Mapping[str, str], least: int) -> None:
    """The same for a method of several rounds, whose uploads are others in every run: `samples`: of which, by site."""
    _check(out, SAMPLES, samples, least)


def _check(out: Path, what: str, counted: Mapping[str, str], least: int) -> None:
    check_first(len(counted), least)  # whatever has changed: who is in the sum can be differenced out by the others in it
    noted = _released(out / RELEASED)
    before = noted.get(what)
    if before is not None:
        changed = sorted(site for site in before.keys() | counted.keys() if before.get(site) != counted.get(site))
        if 0 < len(changed) < least:
            raise ReleaseError(
                f"the sum is not released again: since the last time it has changed by {', '.join(changed)} only, and whoever "
                f"has both could compute what was sent; `release-sites` is {least}. What came is kept and counts in the next "
                f"run; wait for more, or set release-sites={len(changed)}"
            )
        if not changed:
            return
    wire.write_sealed(out / RELEASED, {**noted, what: dict(counted)})


def _released(path: Path) -> dict[str, dict[str, str]]:
    """What was in the last releases, of uploads that are kept and of several rounds; empty where there was none."""
    if not path.exists():
        return {}
    try:
        found = wire.read_sealed(path)
        kinds = [what for what in (UPLOADS, SAMPLES) if what in found]
        if not kinds:
            raise ValueError
        return {what: {str(site): str(upload) for site, upload in found[what].items()} for what in kinds}
    except (AttributeError, KeyError, ValueError):
        raise ReleaseError(f"{path} is damaged; restore it, or choose another `out`") from None
