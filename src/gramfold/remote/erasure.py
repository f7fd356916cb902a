"""Taking a site out for good: of the sum, of the files, and of later runs, with a receipt.

Where single uploads are kept, the sum is made anew from the others', unless the task itself holds words that may be the site's: a
table's categories, a class that nobody else has. Else it begins anew: the sum alone cannot be parted, and the other sites, who
have their uploads, send them again in the next run. The files of models and figures made with the site are removed; models at
other sites are replaced by the next run.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from gramfold import wire
from gramfold.errors import FileError, GramfoldError, RemoteError
from gramfold.numerics.arrays import to_numpy
from gramfold.origin import TABLE
from gramfold.remote import register
from gramfold.remote.ledger import KEPT, LEDGER, Ledger
from gramfold.remote.tasks import task_from_json
from gramfold.report import card_files
from gramfold.results.folder import EVENTS, REPORT, RESULT
from gramfold.results.saved import HEADS, RUN, SHARED

FORGOTTEN, ERROR = "forgotten.jsonl", "error.txt"
DERIVED = (RUN, SHARED, *(path.name for path in card_files(Path(SHARED))), RESULT, REPORT, EVENTS)
"""What a run writes that its sites' uploads went into, or that names them."""


def forget(out: Path, site: str) -> dict[str, Any]:
    """Erase a site from a run's folder; returns the receipt, which is also a line of `forgotten.jsonl`."""
    if not out.is_dir():
        raise RemoteError(f"no folder {out}: name the `out` of the runs that the site took part in")
    with wire.locked(out, f"a run is writing to {out}; wait for its end"):
        ledger, about = _open(out)
        before, here = _lines(out), ledger.counted.keys() | _named_in(out)
        last = before[-1].get("left", ()) if before else ()  # where the sum has begun anew, nothing else names them
        known = sorted(here | set(last))
        if site not in known:
            gone = {line["site"]: line["time"] for line in before}
            again = f"; it was forgotten on {gone[site]}" if site in gone else ""
            there = ", ".join(name for name in known if name not in gone) or "none"
            raise RemoteError(f"nothing of site {site!r} is in {out}{again}; there are: {there}")
        return _erase(out, site, ledger, about, left=[name for name in known if name != site])


def enforce(out: Path) -> list[str]:
    """Forget again whoever was forgotten and is back, from a backup that was restored or copied here; returns the names. For a
    run that has the folder's lock."""
    known = register.read(out)
    if not known:
        return []
    ledger, about = _open(out)
    back = [
        site for site in sorted(ledger.counted.keys() | _named_in(out))
        if known.holds(out, site, ledger.id if site in ledger.counted else "", ledger.digests.get(site))
    ]  # fmt: skip
    for site in back:
        left = sorted((ledger.counted.keys() | _named_in(out)) - {site})
        _erase(out, site, ledger, about, left)
        ledger, about = _open(out)
    return back


def _open(out: Path) -> tuple[Ledger, Mapping[str, str]]:
    path, kept = out / LEDGER, out / KEPT if (out / KEPT).is_dir() else None
    return Ledger.open(path, kept) if path.exists() else (Ledger(kept=kept), {})


def _erase(out: Path, site: str, ledger: Ledger, about: Mapping[str, str], left: list[str]) -> dict[str, Any]:
    removed = [name for name in (*DERIVED, ERROR) if (out / name).exists()]
    heads = [path for path in _head_files(out, site) if path.exists()]
    receipt = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"), "site": site, "upload": ledger.counted.get(site),
        "sha256": ledger.digests.get(site), "samples": ledger.samples.get(site), "left": left,
        "removed": removed + [f"{HEADS}/{path.name}" for path in heads],
    }  # fmt: skip
    register.add(out, site, ledger.id if site in ledger.counted else "", ledger.digests.get(site))
    rebuilt = site in ledger.counted and ledger.forget(site) and _words_are_the_others(ledger, about)
    receipt["sum"] = "made anew from the other uploads" if rebuilt else "begun anew: the other sites send theirs again"
    _append(out / FORGOTTEN, receipt)  # first, so that no run takes it in again whatever happens below
    for path in (*(out / name for name in removed), *heads):
        path.unlink(missing_ok=True)
    if rebuilt and ledger.counted:
        ledger.save(out / LEDGER, **about)
    else:
        (out / LEDGER).unlink(missing_ok=True)
        ledger.counted.clear()
        ledger.sweep()
    wire.sync_folder(out)
    return receipt


def _words_are_the_others(ledger: Ledger, about: Mapping[str, str]) -> bool:
    """Whether all names in the task belong to those who are left: it is agreed on anew where a table's categories are in it, or a
    class of which nobody has a sample."""
    task = task_from_json(about["task"])
    if task.origin is not None and task.origin.kind == TABLE:
        return False
    counts = getattr(ledger.total, "squares", None)
    return task.labels is None or counts is None or bool((np.asarray(to_numpy(counts)) > 0).all())


class Forgotten:
    """The sites that were erased from a folder, also where its own list of them is gone with a backup."""

    def __init__(self, out: Path) -> None:
        self._out, self._register = out, register.read(out)
        self.times = {str(line["site"]): str(line["time"]) for line in _lines(out)}

    def check(self, site: str) -> None:
        """Raise for a site that was taken out for good."""
        if site in self.times or self._register.holds(self._out, site):
            when = f" on {self.times[site]}" if site in self.times else ""
            raise RemoteError(f"it was forgotten{when} and is not taken in again; choose another `out` for it")

    def hashes(self) -> list[str]:
        """For sites whose names are not known before they answer: they refuse themselves, before they send anything."""
        return sorted(register.name_hash(site) for site in self.times)


def _lines(out: Path) -> list[dict[str, Any]]:
    path = out / FORGOTTEN
    if not path.exists():
        return []
    try:
        found = wire.read_lines(path)
        return [{**line, "site": str(line["site"]), "time": str(line["time"])} for line in found]
    except (KeyError, TypeError, ValueError):
        raise FileError(f"{path} is damaged; restore it, so that nobody is taken in again who was forgotten") from None


def _named_in(out: Path) -> set[str]:
    """The clients in a run's figures."""
    try:
        found = json.loads(wire.read(out / RESULT))["methods"]
        return {str(client["name"]) for method in found for client in method["clients"]}
    except (GramfoldError, KeyError, TypeError, ValueError):
        return set()


def _head_files(out: Path, site: str) -> tuple[Path, ...]:
    head = out / HEADS / f"{wire.file_name(site)}.safetensors"
    return (head, *card_files(head))


def _append(path: Path, line: dict[str, Any]) -> None:
    before = wire.read(path) if path.exists() else b""
    wire.write_atomically(path, before + wire.sealed_line(line))
