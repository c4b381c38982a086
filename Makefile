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
# Which versions: those of the lock, each checked against its hash, unless `oldest` or `newest` asks.
VERSIONS := --constraint requirements.hashes --build-constraint requirements.hashes
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python $(VERSIONS)
# A process that is done takes over what another has left. If one dies, the run ends: xdist would
# replace it, but then waits for ever.
PARALLEL = --numprocesses $(JOBS) --dist worksteal --max-worker-restart 0
# A Go module; pip's package of that name would download a binary.
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: help report test lab lint lint-workflows anywhere oldest newest lock wheel test-ui fuzz bench batch coverage simulate attack faults networks picture clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

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

lint: $(VENV)/test  ## ruff and mypy alone
	@$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy

lint-workflows: $(BIN)/actionlint  ## check .github/workflows (needs Go, which builds actionlint)
	@$(BIN)/actionlint

oldest: .venv-oldest  ## all tests, with the oldest libraries that pyproject.toml allows
	@.venv-oldest/bin/python -m pytest $(PARALLEL)

newest: .venv-newest  ## all tests, with the newest libraries there are instead of those of the lock
	@.venv-newest/bin/python -m pytest $(PARALLEL)

anywhere: .venv-oldest .venv-newest  ## all notebooks and tests as on other machines (half an hour)
	@.venv-newest/bin/python benchmarks/anywhere.py

.PHONY: .venv-oldest .venv-newest
.venv-oldest:
	@$(MAKE) VENV=$@ VERSIONS='--resolution lowest-direct' $@/test

.venv-newest:
	@$(MAKE) --always-make VENV=$@ VERSIONS=--upgrade $@/test

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

attack: $(VENV)/test  ## odd input, signals, kills, a full disk, into benchmarks/ATTACK.md (SEED=2026, hours)
	@$(BIN)/python benchmarks/attack.py --seed $(SEED)

faults: $(VENV)/test  ## faults made on purpose: are they noticed? (SEED=2026, half an hour)
	@$(BIN)/python benchmarks/faults.py --seed $(SEED)

networks: $(VENV)/test  ## how right are the networks? (SEED=2026, a minute)
	@$(BIN)/python benchmarks/networks.py --seed $(SEED)

picture: report  ## renew README's picture
	@$(BIN)/python docs/picture.py

lock: $(BIN)/uv  ## renew requirements.lock, and requirements.hashes for installers that take hashes
	@$(BIN)/uv pip compile --quiet --universal --all-extras --upgrade --python-version 3.11 \
	    --no-annotate --no-header --generate-hashes pyproject.toml --output-file requirements.hashes
	@sed '/^ /d; s/ \\$$//' requirements.hashes > requirements.lock

clean:  ## remove what these targets made
	rm -rf $(VENV) .venv-oldest .venv-newest report dist .pytest_cache .mypy_cache .ruff_cache

$(BIN)/uv:
	@echo 'nummodel: setting up $(VENV) first (about a minute, 700 MB)' >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(BIN)/actionlint: $(BIN)/uv
	@command -v go >/dev/null || { echo 'make: Go is not installed; it builds actionlint' >&2; exit 1; }
	@GOBIN=$(abspath $(BIN)) go install $(ACTIONLINT)

$(VENV)/run: $(BIN)/uv pyproject.toml requirements.hashes
	@echo 'nummodel: installing what the notebooks need' >&2
	@$(INSTALL) --editable '.[notebooks]'
	@touch $@

$(VENV)/test: $(VENV)/run
	@echo 'nummodel: installing what the tests need' >&2
	@$(INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/ui: $(VENV)/test
	@echo 'nummodel: installing what the tests in a browser need' >&2
	@$(INSTALL) --editable '.[ui]'
	@touch $@

# LINE is measured where it can be had. It asks for older pandas than ours and for a hundred
# packages more, but computes without them; so it comes alone, and stays out of requirements.lock.
$(VENV)/bench: $(VENV)/test
	@echo 'nummodel: installing what the benchmarks compare with' >&2
	@$(INSTALL) --no-deps 'line-solver==3.0.8.0' || echo 'no line-solver: goes without'
	@touch $@
