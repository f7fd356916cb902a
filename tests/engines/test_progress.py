"""Long work shows how far it is, on standard error; what takes a moment shows nothing; and progress=False nothing ever."""

import io
import re
import sys

import pytest
from rich.console import Console

import gramfold as gf
from gramfold import progress
from gramfold.engines import Event
from gramfold.federation import digits

DIGITS = gf.Federation.from_dataset(digits(), clients=6, partition="iid")


def shown_by(kind, terminal=False):
    out = io.StringIO()
    return kind(1, Console(file=out, force_terminal=terminal, width=100), terminal), out


def test_a_short_run_shows_nothing(capfd):
    gf.run("afl", DIGITS)
    gf.compare(["afl", "local"], DIGITS, seeds=2)
    assert capfd.readouterr() == ("", "")


def test_a_long_run_has_a_line_now_and_then(capfd, monkeypatch):
    monkeypatch.setattr(progress, "LINE", 0.0)
    gf.run("afl", DIGITS)
    out, err = capfd.readouterr()
    assert not out
    assert re.search(r"^afl: local, 6 of 6, 0 s$", err, re.MULTILINE)
    assert err.splitlines()[-1] == "afl: 0 s"


def test_a_comparison_numbers_its_runs(capfd, monkeypatch):
    monkeypatch.setattr(progress, "LINE", 0.0)
    gf.compare(["afl", "local"], DIGITS, seeds=2)
    titles = dict.fromkeys(re.findall(r"^(\[.*?):", capfd.readouterr().err, re.MULTILINE))
    assert list(titles) == ["[1/4] afl, seed 0", "[2/4] local, seed 0", "[3/4] afl, seed 1", "[4/4] local, seed 1"]


def test_false_shows_nothing_and_a_function_is_called(capfd, monkeypatch):
    monkeypatch.setattr(progress, "LINE", 0.0)
    events: list[Event] = []
    gf.run("afl", DIGITS, progress=False)
    gf.compare(["afl"], DIGITS, seeds=1, progress=False)
    assert not events
    gf.run("afl", DIGITS, progress=events.append)
    alone = len(events)
    gf.compare(["afl"], DIGITS, seeds=1, progress=events.append)
    assert len(events) == 2 * alone > 0
    assert capfd.readouterr() == ("", "")


def test_a_terminal_has_a_bar_that_goes():
    shown, out = shown_by(progress.OnTerminal, terminal=True)
    with shown.piece("pace") as show:
        show("round 1", 3, 10)
        task = shown._bar.tasks[0]
        assert (task.description, task.completed, task.total) == (r"\[1/1] pace: round 1", 3, 10)
    assert not shown._bar.tasks
    shown.close()
    assert "pace" in out.getvalue()


def test_a_bar_inside_of_another_is_no_error():
    outer, out = shown_by(progress.OnTerminal, terminal=True)
    inner = progress.OnTerminal(1, outer.console, True)
    with outer.piece("a") as show, inner.piece("b") as within:
        show("x", 1, 2)
        within("y", 1, 2)
    inner.close()
    outer.close()
    assert out.getvalue()


def test_a_notebook_has_one_line_that_changes(monkeypatch):
    said = []

    class Handle:
        def update(self, content, raw):
            said.append(content["text/plain"])

    def display(content, raw, display_id):
        said.append(content["text/plain"])
        return Handle()

    pytest.importorskip("IPython")
    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(progress, "AT_ONCE", -1.0)
    monkeypatch.setattr(progress, "REFRESH", -1.0)
    shown, _ = shown_by(progress.InNotebook)
    with shown.piece("pace") as show:
        show("local", 1, 2)
        show("local", 2, 2)
    assert said == ["pace: local, 1 of 2, 0 s", "pace: local, 2 of 2, 0 s", "pace: 0 s"]


def test_a_notebook_is_one_that_has_a_kernel(monkeypatch):
    class Shell:
        kernel = object()

    class Module:
        get_ipython = staticmethod(Shell)

    assert not progress._in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", Module)
    assert progress._in_notebook()


def test_features_of_raw_samples_show_how_far_they_are(capfd, monkeypatch):
    monkeypatch.setattr(progress, "LINE", 0.0)

    def lengths(texts):
        return [[len(text), 1.0] for text in texts]

    lengths.kind = "texts"  # type: ignore[attr-defined]
    table = {"text": ["a", "bb"] * 20, "label": [0, 1] * 20}
    gf.load_data(table, lengths, label_column="label")
    assert "40 of 40" in capfd.readouterr().err
    gf.load_data(table, lengths, label_column="label", progress=False)
    assert not capfd.readouterr().err


def test_the_time_of_trial_runs_counts():
    pytest.importorskip("torch")
    phases = []
    method = gf.FedAvg(rounds=3, epochs=1, sweep_rounds=2)
    comparison = gf.compare([method], DIGITS, seeds=1, progress=lambda event: phases.append(event.phase))
    spent = comparison.results["fedavg"][0]["seconds"]
    assert spent["tuning"] > spent["local"], "seven trials of two rounds each"
    assert comparison.to_dict()["methods"][0]["seconds"] == pytest.approx(sum(spent.values()))
    assert any(phase.startswith("trial runs, ") for phase in phases)
    plain = gf.run(gf.FedAvg(rounds=3, epochs=1, lr=0.1), DIGITS)
    assert "tuning" not in plain.seconds
