"""The command line, called from here."""

import sys

import pytest

from gramfold.cli.main import main


@pytest.fixture
def gramfold(monkeypatch, capsys, tmp_path):
    """Run the command in an empty folder; gives back exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gramfold", *arguments])
        with pytest.raises(SystemExit) as leaving:
            main()
        captured = capsys.readouterr()
        return int(leaving.value.code or 0), captured.out, captured.err

    return call
