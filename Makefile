# make help lists the targets. INSTALLER=pip does without uv; PYTHON names another interpreter.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c "" 2>/dev/null && echo $$p && break; done)
ENVIRONMENT = . .venv/environment.sh
PYTEST_ARGS ?=
# Tests start hundreds of Python processes, each of which would compile all it imports.
export PYTHONDONTWRITEBYTECODE =
# These processes share the tests out (tests/conftest.py); with 0 there is one, which shows its output
# at once. Tests wait for servers, other processes and Spark: three keep two processors busy, if the
# memory suffices for what each starts.
PROCESSES ?= $(shell awk '/MemAvailable/ {n = $$2 / 5000000; print n < 1 ? 1 : n < 3 ? int(n) : 3}' /proc/meminfo 2>/dev/null || echo 3)
# They make a million small files, which takes half of the time in memory, if it has room for them.
MEMORY_GIB := $(shell df -k /dev/shm 2>/dev/null | awk 'NR == 2 {print int($$4 / 1024 / 1024)}')
TESTS_TMPDIR ?= $(shell [ "0$(MEMORY_GIB)" -ge 16 ] && echo /dev/shm || echo "$${TMPDIR:-/tmp}")
SHARED_OUT = TMPDIR=$(TESTS_TMPDIR) pytest -n $(PROCESSES) --dist loadscope --no-loadscope-reorder
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: calibrate help demo test test-slow test-all test-turn turn coverage test-hdfs test-java test-native test-oracle test-proof test-scala golden setup setup-demo lint format wheels bench-access bench-build bench-doors bench-fleet bench-merge bench-optimizer bench-read bench-scale bench-sql bench-types docs pins plots clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-15s %s\n", $$1, $$2 }'

demo: setup-demo ## Show the index at work on real Hudi tables (sets up what it needs)
	@$(ENVIRONMENT) && hudi-index demo

test: setup lint ## Set up, lint and run the fast tests of every folder; PYTEST_ARGS picks some
	@$(ENVIRONMENT) && $(SHARED_OUT) $(PYTEST_ARGS)

test-slow: setup ## Run the slow tests: most of Spark, HBase, HDFS, a cluster, TPC-H, all Hudi releases, faults
	@$(ENVIRONMENT) && $(SHARED_OUT) -m slow $(PYTEST_ARGS)

test-all: setup lint ## Run every test
	@$(ENVIRONMENT) && $(SHARED_OUT) -m "" $(PYTEST_ARGS)

test-turn: setup lint ## Run what a landing runs: all tests, but a third of those that repeat one question many times
	@$(ENVIRONMENT) && $(SHARED_OUT) -m "" --durations=30 $$(python -m tests.turns options) $(PYTEST_ARGS)
	@$(ENVIRONMENT) && $(SHARED_OUT) -m "" $$(python -m tests.turns scala-2.13)
	@$(ENVIRONMENT) && $(SHARED_OUT) $$(python -m tests.turns java-25)
	@$(ENVIRONMENT) && python -m dev.native_code test

coverage: setup ## Measure which lines of the package the fast tests reach
	@$(ENVIRONMENT) && $(SHARED_OUT) --cov --cov-report=term $(PYTEST_ARGS)

turn: ## Raise the number of the landing in .ci/turn, which picks that third
	@$(ENVIRONMENT) && python -m tests.turns raise

test-scala: setup ## Run the tests of Spark's queries with Scala 2.13
	@$(ENVIRONMENT) && $(SHARED_OUT) -m "" --scala 2.13 tests/spark_rule $(PYTEST_ARGS)

test-java: setup ## Run the fast tests of indexes with JDK 25
	@$(ENVIRONMENT) && $(SHARED_OUT) --java 25 tests/index $(PYTEST_ARGS)

test-hdfs: setup ## Run the tests of tables in a real HDFS, which it starts on the loopback interface
	@$(ENVIRONMENT) && TMPDIR=$(TESTS_TMPDIR) pytest tests/hdfs -m "" $(PYTEST_ARGS)

test-proof: setup ## Compare index, scan and Spark on many more random tables and predicates
	@$(ENVIRONMENT) && PROOF_COMPARISONS=$${PROOF_COMPARISONS:-200000} \
	  PROOF_SEED=$${PROOF_SEED:-$$RANDOM} pytest tests/proof -m "" $(PYTEST_ARGS)

test-oracle: setup ## Compare the working tree with the service of a fixed commit: rows, errors, work
	@$(ENVIRONMENT) && python -m dev.oracle && ORACLE_COMPARISONS=$${ORACLE_COMPARISONS:-20000} \
	  ORACLE_SEED=$${ORACLE_SEED:-$$RANDOM} pytest tests/oracle -m "" $(PYTEST_ARGS)

golden: setup ## Write the golden tables of the tests by Spark and Hudi; TABLES picks some
	@$(ENVIRONMENT) && python -m tests.golden $(TABLES)

setup: ## Make .venv with everything, Airflow and test tools too
	@$(BOOTSTRAP) test

setup-demo: ## Make .venv with what the demo needs
	@$(BOOTSTRAP) demo

test-native: setup ## Run the tests of the Rust and Java that need neither Python nor Spark's session
	@$(ENVIRONMENT) && python -m dev.native_code test

lint: setup ## Check style, types, which module may import which; Rust by rustfmt and clippy, its crates, Java's style
	@$(ENVIRONMENT) && ruff check . && ruff format --check . && mypy && lint-imports && \
	  python -m dev.native_code lint

format: setup ## Rewrite the code in the project's style
	@$(ENVIRONMENT) && ruff check --fix . && ruff format . && python -m dev.native_code format

wheels: setup-demo ## Build the six distributions into dist/, as wheels and as sdists
	@$(ENVIRONMENT) && python -m dev.wheels dist

bench-access: setup ## Measure rows by position against a scan: benchmarks/results/access.json
	@$(ENVIRONMENT) && python -m benchmarks.access

calibrate: setup ## Measure what reading costs on this machine, for the optimizer; BENCH_ARGS=--dry-run shows it
	@$(ENVIRONMENT) && python -m benchmarks.calibrate $(BENCH_ARGS)

bench-build: setup ## Measure builds against Hudi and Lance: benchmarks/results/build.json
	@$(ENVIRONMENT) && python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv/bench -r constraints/bench.txt && python -m benchmarks.build $(BENCH_ARGS)

bench-doors: setup ## Measure reads by HTTP, agents, Polars and DuckDB: benchmarks/results/doors.json
	@$(ENVIRONMENT) && python -m benchmarks.doors $(BENCH_ARGS)

bench-fleet: setup ## Measure one service that keeps 200 tables: benchmarks/results/fleet.json
	@$(ENVIRONMENT) && python -m benchmarks.fleet $(BENCH_ARGS)

bench-read: setup ## Measure reads against Spark, DuckDB and Lance: benchmarks/results/read.json
	@$(ENVIRONMENT) && python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv/bench -r constraints/bench.txt && python -m benchmarks.read $(BENCH_ARGS)

bench-merge: setup ## Measure slices with log files: benchmarks/results/merge.json
	@$(ENVIRONMENT) && python -m benchmarks.merge $(BENCH_ARGS)

bench-optimizer: setup ## Measure what the optimizer chooses: benchmarks/results/optimizer.json
	@$(ENVIRONMENT) && python -m benchmarks.optimizer $(BENCH_ARGS)

bench-scale: setup ## Measure tables of up to 10,000 base files: benchmarks/results/scale.json
	@$(ENVIRONMENT) && python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv/bench -r constraints/bench.txt && python -m benchmarks.scale $(BENCH_ARGS)

bench-sql: setup ## Measure plain queries with the rule against bare Spark: benchmarks/results/sql.json
	@$(ENVIRONMENT) && python -m benchmarks.sql $(BENCH_ARGS)

bench-types: setup ## Measure the index types side by side: benchmarks/results/types.json
	@$(ENVIRONMENT) && python -m benchmarks.index_types $(BENCH_ARGS)

docs: setup ## Build the docs site: build/site/index.html
	@$(ENVIRONMENT) && mkdocs build

plots: setup ## Draw the plots of README.md from benchmarks/results
	@$(ENVIRONMENT) && python -m benchmarks.plots

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
