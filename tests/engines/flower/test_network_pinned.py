"""A server that sends every site a program of its own: a site that is pinned answers with gramfold, and runs nothing else."""

import os

import pytest

pytest.importorskip("flwr", reason="the flower engine needs Flower")

from flower_cases import write_site
from gramfold.deploy.template import write_app
from gramfold.engines.flower.network import Network, Site
from gramfold.engines.flower.pinned import CLIENT, OTHERS, write_pins
from gramfold.errors import GramfoldError

CLIENT_PROGRAM = """
from pathlib import Path
from flwr.app import Message
from flwr.clientapp import ClientApp

Path({marker!r}).write_text("the server's program was here")
app = ClientApp()

@app.query()
def answer(message, context):
    return Message(message.content, reply_to=message)
"""
SERVER_PROGRAM = """
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp
import time

app = ServerApp()

@app.main()
def main(grid, context):
    (node,) = grid.get_node_ids()
    content = RecordDict({{"any": ConfigRecord({{"say": "hello"}})}})
    names = grid.push_messages([Message(content, node, "query")])
    until, answers = time.time() + 60, []
    while not answers and time.time() < until:
        answers = list(grid.pull_messages(names))
        time.sleep(0.5)
    said = answers[0].content["header"]["json"] if answers and answers[0].has_content() else "no answer: " + str(answers)
    Path({heard!r}).write_text(said)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_program_that_the_server_sends_does_not_run_at_a_pinned_site(tmp_path, federation):
    marker, heard = tmp_path / "marker", tmp_path / "heard"
    app = tmp_path / "evil"
    write_app(app, {})
    project = (app / "pyproject.toml").read_text()
    for ours, theirs in (("server_app:app", "evil_server:app"), ("client_app:app", "evil_client:app")):
        assert f"gramfold.engines.flower.{ours}" in project
        project = project.replace(f"gramfold.engines.flower.{ours}", theirs)
    (app / "pyproject.toml").write_text(project)
    (app / "evil_client.py").write_text(CLIENT_PROGRAM.format(marker=str(marker)))
    (app / "evil_server.py").write_text(SERVER_PROGRAM.format(heard=str(heard)))
    write_site(tmp_path / "own.npz", federation.clients[0])
    with Network(tmp_path / "network", [Site("north", {"data": str(tmp_path / "own.npz")})]) as network:
        network.run(app, {})
    assert "not a gramfold message" in heard.read_text(), "the site's own program answered"
    assert not marker.exists()


def test_the_commands_are_the_sites_and_all_others_refuse(tmp_path):
    folder = write_pins(tmp_path / "pinned")
    assert sorted(path.name for path in folder.iterdir()) == sorted([CLIENT, *OTHERS])
    for path in folder.iterdir():
        assert os.access(path, os.X_OK)
        assert path.stat().st_mode & 0o077 == 0
        assert ("gramfold.engines.flower.pinned" in path.read_text()) == (path.name == CLIENT)


def test_a_flower_that_starts_something_else_is_said(tmp_path, monkeypatch):
    from flwr.supercore import constant

    monkeypatch.setattr(constant, "TASK_TYPE_TO_COMMAND", {"a": CLIENT, "b": "flwr-novelty"})
    with pytest.raises(GramfoldError, match="starts flwr-novelty, which gramfold does not know"):
        write_pins(tmp_path / "pinned")


def test_a_flower_that_cannot_be_kept_out_gives_no_answer(monkeypatch):
    import importlib

    from gramfold.engines.flower import pinned

    runtime = importlib.import_module("flwr.supernode.runtime.run_clientapp")
    monkeypatch.delattr(runtime, "get_load_client_app_fn")
    with pytest.raises(SystemExit, match="cannot be kept out"):
        pinned.main()
