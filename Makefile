# A fresh clone needs Python >= 3.11 and make, nothing else: `make demo`, `make test`.
# Everything installs into .venv from the lock files, each file checked against its hash.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --no-input
# The tool that resolves the lock files; only `make lock` needs it.
UV ?= uv
# Processes that run the tests.
WORKERS ?= 2
# Which benchmark `make bench` runs; empty for all.
BENCH ?=
# How long `make soak` takes, in minutes, and where its figures go.
MINUTES ?= 30
SOAK ?= soak.json

# The newest interpreter that runs and can make a virtual environment. A name on the PATH proves nothing
# (version managers leave shims that fail), so each candidate has to answer. `make PYTHON=...` overrides.
CANDIDATES := python3.14 python3.13 python3.12 python3.11 python3 python
PROBE := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint bench soak mutants lock clean

help:
	@echo 'make demo     install what the demo needs, then plan a trip offline'
	@echo 'make test     lint, types, architecture, tests and the examples of the docs'
	@echo 'make lint     the same without the tests'
	@echo 'make bench    the benchmarks; BENCH=store for one'
	@echo 'make soak     half an hour of mixed load by four processes; MINUTES=5 for less'
	@echo 'make mutants  break the code on purpose; the tests must notice'
	@echo 'make venv     .venv with everything that developing needs'
	@echo 'make lock     resolve the lock files again (needs uv); LOCKFLAGS=--upgrade for newer versions'
	@echo 'make clean    remove .venv and every cache'

$(BIN)/python:
	@set -e; found=''; \
	for candidate in $(if $(PYTHON),'$(PYTHON)',$(CANDIDATES)); do \
	  if "$$candidate" -c '$(PROBE)' </dev/null >/dev/null 2>&1; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo 'No Python 3.11 to 3.14 with venv and ensurepip answers (tried: $(or $(PYTHON),$(CANDIDATES))).' >&2; \
	  echo 'Install one (on Debian also python3-venv), or name it: make PYTHON=/path/to/python3' >&2; \
	  exit 1; \
	fi; \
	echo "making $(VENV) with $$($$found --version)"; \
	"$$found" -m venv --clear $(VENV)

$(VENV)/runtime.stamp: requirements.lock pyproject.toml | $(BIN)/python
	@echo 'installing from requirements.lock'
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/runtime.stamp
	@echo 'installing from requirements-dev.lock'
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

venv: $(VENV)/dev.stamp

demo: $(VENV)/runtime.stamp
	@$(BIN)/memlineage demo travel

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n $(WORKERS)

bench: $(VENV)/runtime.stamp
	$(BIN)/memlineage bench $(BENCH)

soak: $(VENV)/runtime.stamp
	$(BIN)/python -m memlineage.evaluation.soak --minutes $(MINUTES) --json $(SOAK)

mutants: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n $(WORKERS) -m mutants

# No index address and no path of the resolving machine may reach a lock file.
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links --no-annotate $(LOCKFLAGS) pyproject.toml --group build --extra embed

lock:
	$(COMPILE) --output-file requirements.lock
	$(COMPILE) --extra dev --constraint requirements.lock --output-file requirements-dev.lock

clean:
	rm -rf $(VENV) build dist .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
