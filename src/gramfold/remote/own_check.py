"""A site's check of its own table, before it computes anything: for its own folder and log, never for a message."""

import logging
from dataclasses import replace
from pathlib import Path

from gramfold import wire
from gramfold.checking import check_site, tables_of
from gramfold.federation import Task
from gramfold.origin import TABLE
from gramfold.remote.raw import RawData
from gramfold.sources import TableEncoder

LOG = logging.getLogger("gramfold.remote")
CHECK = "check.json"


def note(folder: Path, raw: RawData | None, task: Task) -> None:
    """Check it once for each session, and keep what was found beside the session's files."""
    path = folder / CHECK
    if raw is None or not raw.is_table or task.origin is None or task.origin.kind != TABLE or path.exists():
        return
    (table,) = tables_of(replace(raw.source, name=raw.site, client=None))
    report = check_site(table, TableEncoder.reopen(task.origin), task.labels is None, raw.release_words)
    wire.write_sealed(path, report.to_dict())
    for finding in report.serious:
        LOG.warning("check: %s", finding)
