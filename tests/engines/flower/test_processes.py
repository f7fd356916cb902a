"""Processes end, with all that they started, and the one line that matters is found in what they said."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gramfold.deploy.processes import MARK, QUIET, Process, end_members, environment, error_line, members
from gramfold.engines.flower.diagnosis import diagnosis

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={detached})
print("ready", child.pid, flush=True)
time.sleep(600)
"""


def start(tmp_path, detached=False):
    script = STUBBORN.format(detached=detached)
    process = Process([sys.executable, "-c", script], tmp_path / "log", environment(tmp_path, tmp_path), tmp_path)
    deadline = time.monotonic() + 60
    while "ready" not in process.output():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process, int(process.output().split()[1])


def ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_a_process_that_does_not_want_to_end_is_ended_with_its_children(tmp_path):
    process, child = start(tmp_path)
    assert set(members(tmp_path)) == {process.pid, child}
    process.stop(seconds=0.2)
    assert not process.running
    assert process.returncode == -signal.SIGKILL
    end_members(tmp_path, seconds=0.1)
    assert ended(child)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_a_child_in_a_session_of_its_own_is_found_and_ended_too(tmp_path):
    process, child = start(tmp_path, detached=True)
    process.stop(seconds=0.2)
    assert not ended(child)
    end_members(tmp_path, seconds=0.1)
    assert ended(child)
    assert members(tmp_path) == []


def test_what_we_start_phones_nobody_and_learns_little(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "1")
    given = environment(tmp_path, tmp_path / "home")
    assert QUIET.items() <= given.items()
    assert (given["FLWR_TELEMETRY_ENABLED"], given["FLWR_DISABLE_UPDATE_CHECK"]) == ("0", "1")
    assert given["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"] == "1"
    assert given[MARK] == str(tmp_path)
    assert "SECRET_TOKEN" not in given
    assert given["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


FLOWER_SAYS = """\
ERROR :     ServerApp raised an exception
Traceback (most recent call last):
    raise GramfoldError("only 1 of at least 2 sites connected")
gramfold.errors.GramfoldError: only 1 of at least 2 sites connected
ERROR :     Exit Code: 201

An unhandled exception occurred in the ServerApp.

For more information, visit: <https://flower.ai/>
INFO :      bye
"""


def test_the_line_that_says_what_went_wrong():
    assert error_line(FLOWER_SAYS) == "gramfold.errors.GramfoldError: only 1 of at least 2 sites connected"
    assert error_line("starting\nstill starting\n\n") == "still starting"
    assert error_line("") == "no output"


def test_known_errors_become_advice():
    assert "register its public key" in diagnosis("[code: 2004] Failed to activate SuperNode.\nConnection attempt failed")
    assert "ca.crt" in diagnosis("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    assert "choose another" in diagnosis("[Errno 98] error while attempting to bind: address already in use")
    assert "cannot reach the server" in diagnosis("WARNING :   Connection attempt failed, retrying in 2 seconds")


PARENT = """
import sys, time
from pathlib import Path
from gramfold.deploy.processes import Process
folder = Path(sys.argv[1])
process = Process(["sleep", "600"], folder / "log", {"PATH": "/usr/bin:/bin"}, folder)
print(process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_a_process_does_not_outlive_a_parent_that_is_killed(tmp_path):
    """A SuperLink was left running with its control port open."""
    with subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert not ended(child)
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 20
    while not ended(child):
        assert time.monotonic() < deadline, "it is still running"
        time.sleep(0.05)


def test_a_process_that_was_stopped_leaves_no_guard(tmp_path):
    process = Process(["sleep", "600"], tmp_path / "log", {"PATH": "/usr/bin:/bin"}, tmp_path)
    process.stop()
    assert process._guard.returncode is not None
