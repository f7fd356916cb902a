"""What Flower keeps of messages: uploads of a run that was refused are gone from its database, and from its log."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gramfold.engines.flower.database import MESSAGES, empty
from gramfold.errors import GramfoldError

SECRET = b"the moments of a site" * 500


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A database as Flower makes it."""
    from flwr.supercore.object_store.sql_object_store import SqlObjectStore
    from flwr.supercore.sql_mixin import SqlMixin

    path = tmp_path_factory.mktemp("flower") / "link.db"
    state = SqlObjectStore.__new__(SqlObjectStore)
    SqlMixin.__init__(state, str(path))
    state.initialize()
    return path


@pytest.fixture
def database(made, tmp_path) -> Path:
    with closing(sqlite3.connect(made)) as link:
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(shutil.copy(made, tmp_path / "link.db"))


def fill(path: Path) -> sqlite3.Connection:
    link = sqlite3.connect(path)
    link.execute("PRAGMA journal_mode = WAL")
    link.execute("INSERT INTO objects (object_id, content) VALUES ('a', ?)", (SECRET,))
    link.commit()
    return link


def holding(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if SECRET[:200] in path.read_bytes()]


def test_the_tables_that_are_emptied_are_flowers(database):
    with closing(sqlite3.connect(database)) as link:
        here = {name for (name,) in link.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"objects", "message", "task_logs", "run"} <= here
    blobs = set()
    with closing(sqlite3.connect(database)) as link:
        for table in here:
            if any(kind == "BLOB" for _, _, kind, *_ in link.execute(f'PRAGMA table_info("{table}")')):
                blobs.add(table)
    keeps = {"fab", "node", "run", "public_key", "token_store", "nonce_store", "connector", "connector_oauth_session"} | {
        "automation"
    }
    assert blobs - set(MESSAGES) <= keeps, "whatever carries bytes of a message is emptied"


def test_uploads_are_gone_from_the_database_and_from_its_log(database):
    link = fill(database)
    assert holding(database.parent) == ["link.db-wal"], "committed, and only in the log"
    link.execute("BEGIN IMMEDIATE")
    with pytest.raises(GramfoldError, match="stop the SuperLink first"):
        empty(database)
    link.rollback()
    link.close()
    assert holding(database.parent) == ["link.db"]
    assert empty(database) == 1
    assert holding(database.parent) == []
    with closing(sqlite3.connect(database)) as again:
        assert again.execute("SELECT count(*) FROM objects").fetchone() == (0,)


def test_what_is_no_database_is_left_alone(tmp_path):
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as link:
        link.execute("CREATE TABLE objects (content BLOB)")
        link.execute("INSERT INTO objects VALUES ('mine')")
        link.commit()
    with pytest.raises(GramfoldError, match="no database of a SuperLink"):
        empty(other)
    with closing(sqlite3.connect(other)) as link:
        assert link.execute("SELECT count(*) FROM objects").fetchone() == (1,)
    (tmp_path / "text.db").write_text("nothing of the kind" * 100)
    with pytest.raises(GramfoldError, match="is no database"):
        empty(tmp_path / "text.db")
    with pytest.raises(GramfoldError, match="no database"):
        empty(tmp_path / "none.db")
