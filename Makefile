# make help lists the targets. INSTALLER=pip does without uv; PYTHON names another interpreter.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c "" 2>/dev/null && echo $$p && break; done)
ENVIRONMENT = . .venv/environment.sh
PYTEST_ARGS ?=
# Two processes share the tests out file by file; with 0 there is one, and its output is shown at once.
PROCESSES ?= 2
# In the order of the folders: by itself xdist begins with the files of most tests, and what takes
# longest is one single test, for whose end one process would then wait alone.
SHARED_OUT = pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-upkeep test-sql test-doors test-versions test-cluster test-tpch test-demo test-faults test-hbase test-proof golden setup setup-demo lint format wheels bench-access bench-build bench-optimizer bench-read bench-sql bench-types pins clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-15s %s\n", $$1, $$2 }'

demo: setup-demo ## Show the index at work on real Hudi tables (sets up what it needs)
	@$(ENVIRONMENT) && hudi-index demo

test: setup lint ## Set up, lint and run the tests; PYTEST_ARGS picks some
	@$(ENVIRONMENT) && $(SHARED_OUT) $(PYTEST_ARGS)

test-upkeep: setup ## Test builds, cleaning, the hook and the advisor
	@$(ENVIRONMENT) && $(SHARED_OUT) tests/advise tests/build tests/clean tests/hook tests/upkeep $(PYTEST_ARGS)

test-sql: setup ## Test statements and queries in SQL
	@$(ENVIRONMENT) && $(SHARED_OUT) tests/sql $(PYTEST_ARGS)

test-doors: setup ## Test the command line, spark-submit, the Airflow DAG, the daemon, and what docs say
	@$(ENVIRONMENT) && $(SHARED_OUT) tests/airflow tests/cli tests/docs tests/server tests/submit $(PYTEST_ARGS)

test-versions: setup ## Test on tables of all Hudi releases, and write golden tables anew
	@$(ENVIRONMENT) && python -m tests.versions.written && pytest tests/versions tests/golden $(PYTEST_ARGS)

golden: setup ## Write the golden tables of the tests by Spark and Hudi; TABLES picks some
	@$(ENVIRONMENT) && python -m tests.golden $(TABLES)

test-cluster: setup ## Test a build on a Spark cluster whose workers have no Python of their own
	@$(ENVIRONMENT) && pytest tests/cluster $(PYTEST_ARGS)

test-tpch: setup ## Test the queries of TPC-H on indexed tables against Spark's own answers
	@$(ENVIRONMENT) && pytest tests/tpch $(PYTEST_ARGS)

test-demo: setup ## Test what `make demo` does
	@$(ENVIRONMENT) && pytest tests/demo $(PYTEST_ARGS)

test-faults: setup ## Test with a fault at every storage call, interleaved actors, threads, kills
	@$(ENVIRONMENT) && pytest tests/faults tests/concurrency $(PYTEST_ARGS)

test-hbase: setup ## Test indexes in HBase: starts a real one on this machine; fetches it the first time
	@$(ENVIRONMENT) && pytest tests/hbase $(PYTEST_ARGS)

test-proof: setup ## Compare index, scan and Spark on many more random tables and predicates
	@$(ENVIRONMENT) && PROOF_COMPARISONS=$${PROOF_COMPARISONS:-200000} \
	  PROOF_SEED=$${PROOF_SEED:-$$RANDOM} pytest tests/proof $(PYTEST_ARGS)

setup: ## Make .venv with everything, Airflow and test tools too
	@$(BOOTSTRAP) test

setup-demo: ## Make .venv with what the demo needs
	@$(BOOTSTRAP) demo

lint: setup ## Check style, types and which module may import which
	@$(ENVIRONMENT) && ruff check . && ruff format --check . && mypy && lint-imports

format: setup ## Rewrite the code in the project's style
	@$(ENVIRONMENT) && ruff check --fix . && ruff format .

wheels: setup-demo ## Build the three distributions into dist/
	@$(ENVIRONMENT) && python -m dev.wheels dist

bench-access: setup ## Measure rows by position against a scan: benchmarks/results/access.json
	@$(ENVIRONMENT) && python benchmarks/access.py

bench-build: setup ## Measure builds against Hudi and Lance: benchmarks/results/build.json
	@$(ENVIRONMENT) && python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv/bench -r constraints/bench.txt && python -m benchmarks.build $(BENCH_ARGS)

bench-read: setup ## Measure reads against Spark, DuckDB and Lance: benchmarks/results/read.json
	@$(ENVIRONMENT) && python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv/bench -r constraints/bench.txt && python -m benchmarks.read $(BENCH_ARGS)

bench-optimizer: setup ## Measure what the optimizer chooses: benchmarks/results/optimizer.json
	@$(ENVIRONMENT) && python -m benchmarks.optimizer $(BENCH_ARGS)

bench-sql: setup ## Measure queries in IndexSession against bare Spark: benchmarks/results/sql.json
	@$(ENVIRONMENT) && python -m benchmarks.sql $(BENCH_ARGS)

bench-types: setup ## Measure the index types side by side: benchmarks/results/types.json
	@$(ENVIRONMENT) && python -m benchmarks.index_types $(BENCH_ARGS)

pins: setup ## Resolve the exact versions in constraints/ anew, keeping those that still fit
	@$(ENVIRONMENT) && python -m dev.pins

clean: ## Remove .venv and what was built; the user's cache stays
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# Without a Python there is nothing that could say what else is missing.
define BOOTSTRAP
test -n "$(PYTHON)" || { echo "missing: Python 3.11: none is on PATH." \
  "Get it: apt install python3.11 python3.11-venv python3.11-dev"; exit 1; }; $(PYTHON) -m dev.bootstrap
endef
