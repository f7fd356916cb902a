"""Taking a site out for good: of the sum, of the files, and of later runs, with a receipt.

Where single uploads are kept, the sum is made anew from the others'. Else it begins anew: the sum alone cannot be parted, and the
other sites, who have their uploads, send them again in the next run. The files of models and figures made with the site are
removed; models at other sites are replaced by the next run.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.errors import GramfoldError
from gramfold.remote.ledger import KEPT, LEDGER, Ledger
from gramfold.results.folder import EVENTS, REPORT, RESULT
from gramfold.results.saved import RUN, SHARED

FORGOTTEN = "forgotten.jsonl"
DERIVED = (RUN, SHARED, RESULT, REPORT, EVENTS)
"""What a run writes that its sites' uploads went into, or that names them."""


def forget(out: Path, site: str) -> dict[str, Any]:
    """Erase a site from a run's folder; returns the receipt, which is also a line of `forgotten.jsonl`."""
    if not out.is_dir():
        raise GramfoldError(f"no folder {out}: name the `out` of the runs that the site took part in")
    with wire.locked(out, f"a run is writing to {out}; wait for its end"):
        path, kept = out / LEDGER, out / KEPT if (out / KEPT).is_dir() else None
        ledger, about = Ledger.open(path, kept) if path.exists() else (Ledger(), {})
        known = sorted(ledger.counted.keys() | _named_in(out / RESULT))
        if site not in known:
            raise GramfoldError(f"nothing of site {site!r} is in {out}; there are: {', '.join(known) or 'none'}")
        removed = [name for name in DERIVED if (out / name).exists()]
        receipt = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"), "site": site, "upload": ledger.counted.get(site),
            "sha256": ledger.digests.get(site), "samples": ledger.samples.get(site), "removed": removed,
        }  # fmt: skip
        rebuilt = site in ledger.counted and ledger.forget(site)
        receipt["sum"] = "made anew from the other uploads" if rebuilt else "begun anew: the other sites send theirs again"
        _append(out / FORGOTTEN, receipt)  # first, so that no run takes it in again whatever happens below
        for name in removed:
            (out / name).unlink(missing_ok=True)
        if rebuilt and ledger.counted:
            ledger.save(path, **about)
        else:
            path.unlink(missing_ok=True)
            ledger.counted.clear()
            ledger.sweep()
        wire.sync_folder(out)
        return receipt


def forgotten(out: Path) -> dict[str, str]:
    """The sites that were erased, and when."""
    path = out / FORGOTTEN
    if not path.exists():
        return {}
    try:
        return {str(line["site"]): str(line["time"]) for line in wire.read_lines(path)}
    except (KeyError, TypeError, ValueError):
        raise GramfoldError(f"{path} is damaged; restore it, so that nobody is taken in again who was forgotten") from None


def _named_in(path: Path) -> set[str]:
    """The clients in a run's figures."""
    try:
        return {str(client["name"]) for method in json.loads(wire.read(path))["methods"] for client in method["clients"]}
    except (GramfoldError, KeyError, TypeError, ValueError):
        return set()


def _append(path: Path, line: dict[str, Any]) -> None:
    before = wire.read(path) if path.exists() else b""
    wire.write_atomically(path, before + wire.sealed_line(line))
