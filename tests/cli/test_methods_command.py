"""`gramfold methods`, as a terminal of 80 columns shows it."""

import json
from dataclasses import fields

import pytest
from typer.testing import CliRunner

from gramfold.cli.main import app
from gramfold.methods import METHODS
from gramfold.methods.protocol import IN_CODE, OF_RUN


def shown(*arguments: str) -> str:
    outcome = CliRunner().invoke(app, ["methods", *arguments], env={"COLUMNS": "80"})
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


def test_the_list_fits_a_terminal():
    lines = shown().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[: lines.index("")] if not line.startswith(" ")] == list(METHODS)
    assert len(lines) < 1.6 * len(METHODS)  # a line or two each


@pytest.mark.parametrize("name", METHODS)
def test_one_method_is_told_in_full(name):
    text = shown(name)
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"\n{field.name} " in text for field in fields(METHODS[name]) if field.metadata not in (IN_CODE, OF_RUN))
    assert METHODS[name].paper.split(",")[0] in text


def test_machines_get_everything():
    told = json.loads(shown("--json"))
    assert [entry["name"] for entry in told] == list(METHODS)
    assert set(told[0]) == {"name", "summary", "paper", "parameters"}
    assert json.loads(shown("apfl", "--json")) == [entry for entry in told if entry["name"] == "apfl"]
