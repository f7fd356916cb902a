"""A SuperLink's database after somebody was forgotten: messages are emptied out of it, and out of its write-ahead log. A run that
was refused or has crashed leaves uploads in both."""

import sqlite3
from contextlib import closing
from pathlib import Path

from gramfold.errors import NetworkError

MESSAGES = (
    "objects", "object_children", "run_objects", "object_push_sessions", "object_push_session_roots",
    "object_push_session_pending", "message", "message_ins", "message_res", "task_message", "series_context",
    "compacted_contexts", "task_logs",
)  # fmt: skip
"""The tables of messages and what they carry, and of the log of runs, which names sites; those of a version that are there."""
RUNS = "run"


def empty(database: Path) -> int:
    """Delete all messages from the database of a SuperLink that is stopped; returns how many rows they were. Nothing of them is
    left in its files: pages are overwritten, the log is taken in and cut off, the file is written anew."""
    if not database.is_file():
        raise NetworkError(f"no database {database}: name the file that the SuperLink was started with (`--database`)")
    try:
        with closing(sqlite3.connect(database, timeout=1.0, isolation_level=None)) as link:
            link.execute("PRAGMA secure_delete = ON")
            link.execute("PRAGMA locking_mode = EXCLUSIVE")
            link.execute("BEGIN EXCLUSIVE")
            here = {str(name) for (name,) in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not {RUNS, "objects"} <= here:
                raise NetworkError(f"{database} is no database of a SuperLink")
            rows = sum(link.execute(f'DELETE FROM "{table}"').rowcount for table in MESSAGES if table in here)
            link.execute("COMMIT")
            link.execute("VACUUM")
            link.execute("PRAGMA journal_mode = DELETE")  # the write-ahead log ends with it; the SuperLink begins a new one
            return rows
    except sqlite3.OperationalError as error:
        raise NetworkError(f"cannot empty {database}: {error}; stop the SuperLink first") from None
    except sqlite3.DatabaseError as error:
        raise NetworkError(f"{database} is no database: {error}") from None
