# Every target does its own set-up. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
SEED ?= 2026
# JupyterLab runs as root only with this option; in many containers root is the only user.
ROOTLY := $(if $(filter 0,$(shell id -u)),--allow-root)

# Let Python store compiled modules, so that not every kernel compiles them again.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH
# Use the machine's certificates, as pip does: a package index may be behind a company's proxy.
export UV_SYSTEM_CERTS := 1
# Install the locked versions and check their hashes; `oldest` and `newest` set other versions.
VERSIONS := --constraint requirements.hashes --build-constraint requirements.hashes
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python $(VERSIONS)
# A process that has finished its tests takes over tests from another process. If a process dies,
# the run ends: xdist would replace the process, and then wait for ever.
PARALLEL = --numprocesses $(JOBS) --dist worksteal --max-worker-restart 0
# Not only the quick tests, which pyproject.toml selects.
ALL := -m ''
TOOLS := postgresql mariadb-server nginx-light wrk sysbench sysstat procps linux-perf \
	apache2-utils fio hey redis-server redis-tools
# Load generators that Debian does not have, each where its language is installed.
LOADS := $(abspath $(VENV))/loads
GO_LOADS := github.com/codesenberg/bombardier@v1.2.6 github.com/tsenart/vegeta/v12@v12.12.0 go.k6.io/k6@v0.57.0
UV := uv==0.13.9
AXE := axe-core@4.14.1
# Go builds actionlint from source; the pip package of this name would download a binary.
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.PHONY: help report test test-all lab lint budget lint-workflows anywhere oldest newest lock wheel test-ui sheet fuzz bench batch coverage adequacy systems forecast limits change locks lockprogram mutations cluster tools whole simulate attack faults networks picture clean

help:  ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

report: $(VENV)/run  ## run every notebook and write report/index.html
	@$(BIN)/nummodel report --jobs $(JOBS)

lab: $(VENV)/run  ## open JupyterLab in notebooks/
	@$(BIN)/jupyter lab --notebook-dir=notebooks $(ROOTLY) $(LABFLAGS)

test: $(VENV)/test lint  ## run ruff, mypy, the rules for imports and all quick tests
	@$(BIN)/python -m pytest $(PARALLEL)

test-all: $(VENV)/test lint  ## the same with the slow tests: all but those in a browser
	@$(BIN)/python -m pytest $(PARALLEL) $(ALL)

test-ui: $(VENV)/ui $(VENV)/axe.min.js  ## test notebooks and reports in a real browser (installs Debian's chromium)
	@$(BIN)/python -m pytest tests/ui

sheet: report $(VENV)/ui  ## put twelve screenshots of the report on one sheet, report/sheet.png
	@$(BIN)/python tests/ui/sheet.py

fuzz: $(VENV)/test  ## run property tests with ten times as many examples, new ones each time
	@$(BIN)/python -m pytest $(PARALLEL) -m hypothesis --hypothesis-profile=fuzz

lint: $(VENV)/test  ## run ruff, mypy and the rules for imports, and no tests
	@$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy
	@$(BIN)/lint-imports --no-cache --no-logo

budget: $(VENV)/test  ## print how many lines each part of the package has, and may have
	@$(BIN)/python tests/test_budget.py

lint-workflows: $(BIN)/actionlint  ## check .github/workflows with actionlint (needs Go to build it)
	@$(BIN)/actionlint

oldest: .venv-oldest  ## run all tests with the oldest libraries that pyproject.toml allows
	@.venv-oldest/bin/python -m pytest $(PARALLEL) $(ALL)

newest: .venv-newest  ## run all tests with the newest libraries instead of the locked versions
	@.venv-newest/bin/python -m pytest $(PARALLEL) $(ALL)

anywhere: .venv-oldest .venv-newest  ## run notebooks and tests as on other machines (half an hour)
	@.venv-newest/bin/python benchmarks/anywhere.py

.PHONY: .venv-oldest .venv-newest
.venv-oldest:
	@$(MAKE) VENV=$@ VERSIONS='--resolution lowest-direct' $@/test

.venv-newest:
	@$(MAKE) --always-make VENV=$@ VERSIONS=--upgrade $@/test

wheel: $(VENV)/run  ## build dist/*.whl, which contains data and notebooks
	@$(BIN)/uv build --quiet --wheel --build-constraint requirements.hashes --require-hashes && ls dist/*.whl

bench: $(VENV)/bench  ## measure set-up, speed and other tools, write benchmarks/RESULTS.md
	@$(BIN)/python benchmarks/run.py

batch: $(VENV)/test  ## time 40 runs beside 40 kernels that only import (a few minutes)
	@$(BIN)/python benchmarks/batch.py

coverage: $(VENV)/test  ## simulate how often intervals hold the truth (SEED=2026, half an hour)
	@$(BIN)/python benchmarks/coverage.py --seed $(SEED)

adequacy: $(VENV)/test  ## simulate what tests of a fit notice (SEED=2026, 20 minutes)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/adequacy.py --seed $(SEED) --jobs $(JOBS)

systems: $(VENV)/test  ## forecast 300 simulated closed systems (SEED=2026, an hour)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/systems.py --seed $(SEED) --jobs $(JOBS)

forecast: $(VENV)/test  ## hold forecasts against curves that went on, sources left out (20 minutes)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/forecast.py --jobs $(JOBS)

locks: $(VENV)/test  ## hold locks on more nodes against measurements, programs left out (15 minutes)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/locks.py

lockprogram: $(VENV)/test  ## predict two threads at four real locks from one, and measure them (a minute)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/lockprogram.py

limits: $(VENV)/test  ## hold what limits and changes are told to be against the truth (10 minutes)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/limits.py --seed $(SEED) --jobs $(JOBS)

change: $(VENV)/test  ## predict two real changes on this machine, then measure them (10 minutes)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/change.py

cluster: $(VENV)/test  ## kill parts of a cluster, time sweeps and runs on it (SEED=2026, half an hour)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/cluster.py --seed $(SEED)

mutations: $(VENV)/test  ## read 100,000 damaged outputs of measuring tools (SEED=2026, 5 minutes)
	@$(BIN)/python benchmarks/mutations.py --seed $(SEED) --jobs $(JOBS)

tools: $(VENV)/test  ## read what servers and load generators print here (installs PostgreSQL, redis, ...)
	@apt-get update -q && apt-get install -qy --no-install-recommends $(TOOLS)
	@$(BIN)/uv venv --quiet --clear $(LOADS) && $(BIN)/uv pip install --quiet --python $(LOADS) locust
	@! command -v go >/dev/null || for one in $(GO_LOADS); do GOBIN=$(LOADS)/bin go install $$one || exit; done
	@! command -v npm >/dev/null || npm install --silent --prefix $(LOADS) autocannon@8
	@! command -v cargo >/dev/null || cargo install --quiet --locked --root $(LOADS) oha
	@PATH=$(LOADS)/bin:$(LOADS)/node_modules/.bin:$$PATH \
		$(BIN)/python -m pytest $(PARALLEL) $(ALL) tests/records

whole: $(VENV)/run  ## measure PostgreSQL under pgbench, and write docs/whole.md (installs Debian's)
	@test -d /usr/lib/postgresql || { apt-get update -q && apt-get install -qy postgresql procps sysstat; }
	@$(BIN)/python benchmarks/whole.py

simulate: $(VENV)/test  ## compare queueing formulas with simulations (SEED=2026, 15 minutes)
	@$(BIN)/python benchmarks/simulation.py --seed $(SEED) --jobs $(JOBS)

attack: $(VENV)/test  ## try odd input, signals, kills and a full disk (SEED=2026, hours)
	@$(BIN)/python benchmarks/attack.py --seed $(SEED)

faults: $(VENV)/test  ## count how many deliberate faults the tests notice (SEED=2026, half an hour)
	@$(BIN)/python benchmarks/faults.py --seed $(SEED)

networks: $(VENV)/test  ## compare networks with 60-digit arithmetic (SEED=2026, a minute)
	@$(BIN)/python benchmarks/networks.py --seed $(SEED)

picture: report  ## renew README's picture
	@$(BIN)/python docs/picture.py

lock: $(BIN)/uv  ## renew requirements.lock and requirements.hashes
	@$(BIN)/uv pip compile --quiet --universal --all-extras --upgrade --python-version 3.11 \
	    --no-annotate --no-header --generate-hashes pyproject.toml --output-file requirements.hashes
	@sed '/^ /d; s/ \\$$//' requirements.hashes > requirements.lock

clean:  ## remove what these targets made
	rm -rf $(VENV) .venv-oldest .venv-newest report dist benchmarks/.sweeps .pytest_cache .mypy_cache .ruff_cache

$(BIN)/uv:
	@echo 'nummodel: setting up $(VENV) first (about a minute, 700 MB)' >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)

$(BIN)/actionlint: $(BIN)/uv
	@command -v go >/dev/null || { echo 'make: Go is not installed; it builds actionlint' >&2; exit 1; }
	@GOBIN=$(abspath $(BIN)) go install $(ACTIONLINT)

$(VENV)/run: $(BIN)/uv pyproject.toml requirements.hashes
	@echo 'nummodel: installing what the notebooks need' >&2
	@$(INSTALL) --editable '.[notebooks]'
	@touch $@

$(VENV)/test: $(VENV)/run
	@echo 'nummodel: installing what the tests need' >&2
	@$(INSTALL) --editable '.[test,cluster]'
	@touch $@

$(VENV)/ui: $(VENV)/test
	@command -v chromium >/dev/null || { apt-get update -q && apt-get install -qy chromium; }
	@echo 'nummodel: installing what the tests in a browser need' >&2
	@$(INSTALL) --editable '.[ui]'
	@touch $@

# The checker of accessibility, by npm's own client, which needs nothing else from there.
$(VENV)/axe.min.js: $(VENV)/ui
	@command -v npm >/dev/null || { apt-get update -q && apt-get install -qy --no-install-recommends npm; }
	@cd $(VENV) && npm pack --silent $(AXE) >/dev/null && tar -xzf axe-core-*.tgz --strip-components 1 package/axe.min.js
	@rm $(VENV)/axe-core-*.tgz; touch $@

# The benchmarks include LINE if it can be installed. LINE declares an older pandas than ours and a
# hundred other packages, but computes without them. So it is installed without its dependencies,
# and is not in requirements.lock.
$(VENV)/bench: $(VENV)/test
	@echo 'nummodel: installing what the benchmarks compare with' >&2
	@$(INSTALL) --no-deps 'line-solver==3.0.8.0' || echo 'nummodel: no line-solver; going on without it' >&2
	@touch $@
