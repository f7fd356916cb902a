"""Names on the command line: of one pattern, and the words that Python has for the same."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

import gramfold as gf
from gramfold.cli.main import app

WORDS = re.compile(r"--[a-z]+(-[a-z]+)*")


def commands(group: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, command in (group or get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{word} ")
        else:
            yield name + word, command


FOUND = dict(commands())


def options(command: str) -> set[str]:
    """The names of its parameters, as Python would call them."""
    listed = (option for each in FOUND[command].params for option in (each.opts if each.opts[0].startswith("-") else [each.name]))
    return {option.lstrip("-").replace("-", "_") for option in listed}


@pytest.mark.parametrize("command", FOUND)
def test_options_are_words_and_what_is_written_is_out(command):
    for each in FOUND[command].params:
        if each.param_type_name != "option":
            continue
        assert WORDS.fullmatch(each.opts[0]), each.opts
        assert each.opts[1:] in ([], ["-o"], ["-h"], ["--help"]), each.opts
        assert ("-o" in each.opts) == (each.opts[0] == "--out"), each.opts


def named(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters)


def test_cutting_and_reading_have_the_words_of_python():
    cut = named(gf.Federation.from_dataset) - {"dataset"}
    assert cut <= options("run")
    assert cut - {"min_size", "drop_small", "test_size"} <= options("flower up")
    read = named(gf.load_data) - {"progress", "encoder", "whole"}
    assert read <= options("run") & options("check") & options("extract")
    assert {"test_size", "random_state", *read} - {"data"} <= options("begin")
    run = named(gf.run) - {"method", "federation", "progress", "keep_heads", "keep_total", "keep_clients", "dp"}
    assert run <= options("run")
    assert named(gf.Head.explain) - {"self", "inputs"} <= options("explain")


def test_data_is_an_argument_everywhere():
    for command in ("run", "check", "extract", "predict", "explain", "begin", "fold", "personal", "bench", "flower up"):
        assert [each.name for each in FOUND[command].params if each.param_type_name == "argument"][-1] == "data", command
