# Every target does its own set-up; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
SEED ?= 2026
# JupyterLab refuses to run as root, whom a container has instead of a user, unless told to.
ROOTLY := $(if $(filter 0,$(shell id -u)),--allow-root)

# So that what is imported is compiled once, and not by every kernel again.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH
# Certificates of the machine, so that an index behind a company's proxy is reached as pip reaches it.
export UV_SYSTEM_CERTS := 1
# Tests of one group run in one process. If a process dies, the run ends: xdist would replace the
# process, but then waits for ever.
PARALLEL = --numprocesses $(JOBS) --dist loadgroup --max-worker-restart 0
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint requirements.lock

.PHONY: help report test lab lint lock wheel test-ui fuzz bench batch coverage simulate networks picture clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

report: $(VENV)/run  ## run every notebook and write report/index.html
	@$(BIN)/nummodel report --jobs $(JOBS)

lab: $(VENV)/run  ## open JupyterLab in notebooks/
	@$(BIN)/jupyter lab --notebook-dir=notebooks $(ROOTLY) $(LABFLAGS)

test: $(VENV)/test lint  ## all tests: formulas, tables, notebooks, command line, wheel
	@$(BIN)/python -m pytest $(PARALLEL)

test-ui: $(VENV)/ui  ## notebooks and reports in a real browser (installs Debian's chromium)
	@command -v chromium >/dev/null || { apt-get update -q && apt-get install -qy chromium; }
	@$(BIN)/python -m pytest tests/ui

fuzz: $(VENV)/test  ## property tests with ten times the examples, and others each time
	@$(BIN)/python -m pytest $(PARALLEL) -m hypothesis --hypothesis-profile=fuzz

lint: $(VENV)/test
	@$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy

wheel: $(VENV)/run  ## build dist/*.whl, data and notebooks included
	@$(BIN)/uv build --quiet --wheel && ls dist/*.whl

bench: $(VENV)/bench  ## measure set-up, speed, and other tools, into benchmarks/RESULTS.md
	@$(BIN)/python benchmarks/run.py

batch: $(VENV)/test  ## 40 runs beside 40 kernels that only import (a few minutes)
	@$(BIN)/python benchmarks/batch.py

coverage: $(VENV)/test  ## do the intervals cover what they say? (SEED=2026, half an hour)
	@$(BIN)/python benchmarks/coverage.py --seed $(SEED)

simulate: $(VENV)/test  ## simulate queues beside their formulas (SEED=2026, quarter of an hour)
	@$(BIN)/python benchmarks/simulation.py --seed $(SEED) --jobs $(JOBS)

networks: $(VENV)/test  ## how right are the networks? (SEED=2026, a minute)
	@$(BIN)/python benchmarks/networks.py --seed $(SEED)

picture: report  ## renew README's picture
	@$(BIN)/python docs/picture.py

lock: $(BIN)/uv  ## renew requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --all-extras --upgrade --python-version 3.11 \
	    --no-annotate --no-header pyproject.toml --output-file requirements.lock

clean:  ## remove what these targets made
	rm -rf $(VENV) report dist .pytest_cache .mypy_cache .ruff_cache

$(BIN)/uv:
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/run: $(BIN)/uv pyproject.toml requirements.lock
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/test: $(VENV)/run
	@$(INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/ui: $(VENV)/test
	@$(INSTALL) --editable '.[ui]'
	@touch $@

# LINE is measured where it can be had. It asks for older pandas than ours and for a hundred
# packages more, but computes without them; so it comes alone, and stays out of requirements.lock.
$(VENV)/bench: $(VENV)/test
	@$(INSTALL) --no-deps 'line-solver==3.0.8.0' || echo 'no line-solver: goes without'
	@touch $@
