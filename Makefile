# Two commands for a newcomer: `make run` shows what gramfold does, `make test` runs everything that must hold.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: run test lint format clean

run: .venv/installed
	$(BIN)/gramfold run --data digits --clients 20 --partition dirichlet:0.1 --out build/run

test: .venv/installed-test lint
	$(BIN)/python -m pytest

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.venv/created:
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed: .venv/created pyproject.toml constraints.txt
	$(INSTALL) --editable .
	touch $@

.venv/installed-test: .venv/installed
	$(INSTALL) --editable ".[test]"
	touch $@

clean:
	rm -rf .venv build
