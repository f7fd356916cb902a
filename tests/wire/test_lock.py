"""A folder has one user at a time, and a process that is killed has it no longer."""

import subprocess
import sys
import time

import pytest

from gramfold import wire
from gramfold.errors import GramfoldError

HOLD = """
import sys, time
from pathlib import Path
from gramfold import wire
with wire.locked(Path(sys.argv[1]), "refused"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_user_is_refused_in_the_words_given_and_the_next_is_not(tmp_path):
    refused = pytest.raises(GramfoldError, match="somebody else is here")
    with wire.locked(tmp_path, "one"), refused, wire.locked(tmp_path, "somebody else is here"):
        pass
    with wire.locked(tmp_path, "two"):
        assert not list(tmp_path.iterdir()), "a lock leaves no file"


def test_one_who_waits_gets_it_or_gives_up(tmp_path):
    with wire.locked(tmp_path, "one"):
        begun = time.monotonic()
        with pytest.raises(GramfoldError, match="two"), wire.locked(tmp_path, "two", patience=0.2):
            pass
        assert 0.2 <= time.monotonic() - begun < 5.0


def test_a_killed_process_holds_nothing(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(GramfoldError), wire.locked(tmp_path, "refused"):
            pass
        process.kill()
    with wire.locked(tmp_path, "refused", patience=5.0):
        pass
