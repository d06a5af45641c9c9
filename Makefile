# `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
CASE ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test quick lint types bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; use make PYTHON=/path/to/python3.11"; exit 2; }
	@echo "making $(VENV) with the packages of pyproject.toml; this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@
	@echo "ready: $(BIN)/sim --help"

setup: $(STAMP)  ## make .venv with everything for running and development

run: $(STAMP)  ## replay one minute of full load on 4000 B200s (exit code 0 also when the SLO is missed)
	@$(BIN)/sim run scenarios/mooncake-b200-4000.yaml || [ $$? -eq 1 ]

test: $(STAMP)  ## run all tests
	$(BIN)/python -m pytest -n 2

quick: $(STAMP)  ## run the tests that take seconds
	$(BIN)/python -m pytest -n 2 -m 'not slow'

lint: $(STAMP)  ## check style
	$(BIN)/ruff check sim tests tools
	$(BIN)/ruff format --check sim tests tools
	$(BIN)/codespell sim tests tools docs scenarios topologies notebooks README.md CHANGELOG.md CONTRIBUTING.md

types: $(STAMP)  ## check types
	$(BIN)/mypy

bench: $(STAMP)  ## measure speed: make bench [CASE=flagship|mooncake|pool|replicas-8|replicas-64|replicas-500]
	$(BIN)/python -m sim.bench $(CASE)

clean:  ## remove .venv, runs and caches
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
