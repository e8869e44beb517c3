# Two commands on a fresh machine with python3 and make:
#   make demo   set up, then run the main job on a recorded conversation
#   make test   set up, then lint, check types and floors, and run the tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint types floors unit bench clean

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install "pip>=25.1"

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable ".[memory]"
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable ".[all]" --group test
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/python samples/demo.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

floors: $(VENV)/.test
	$(BIN)/lint-imports

types: $(VENV)/.test
	$(BIN)/mypy

unit: $(VENV)/.test
	$(BIN)/python -m pytest -n 2

test: lint floors types unit

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
