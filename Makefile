# Flagkeep: `make run` builds and starts the server, `make test` tests it. Needs git, make, node and npm only:
# everything else, Bun included, is pinned in package-lock.json and installed by npm.

BUN := node_modules/.bin/bun
SOURCES := $(shell find cli src -type f 2>/dev/null) build.ts package.json

.DEFAULT_GOAL := help
.PHONY: help run build release check audit static format test test-fast clickhouse test-clickhouse test-cluster test-budgets test-crash test-random test-sdk kill-test prove mutation bench bench-flood bench-backups bench-disk-space bench-queries bench-statements bench-experiments bench-cluster bench-workers bench-peers bench-flag-peers soak pictures clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

node_modules/.installed: package.json package-lock.json
	@# Not `npm ci`: it fails where a registry lacks the packages of other platforms. Versions are those of the lock file.
	npm install --no-save --no-audit --no-fund
	@# npm may be set up to leave out install scripts; Bun's puts the executable in place.
	@$(BUN) --version >/dev/null 2>&1 || node node_modules/bun/install.js
	@$(BUN) --version >/dev/null
	@touch $@

dist/flagkeep: node_modules/.installed $(SOURCES)
	$(BUN) build.ts --outfile $@

build: dist/flagkeep ## Build the executable dist/flagkeep

run: build ## Build and start Flagkeep on http://127.0.0.1:8000 with ./data
	dist/flagkeep serve --data-dir ./data

release: node_modules/.installed ## Build the executables of a release (RELEASE_TARGETS="linux-x64 linux-arm64")
	RELEASE_TARGETS="$(RELEASE_TARGETS)" $(BUN) deploy/release.ts

static: node_modules/.installed ## Check format, lint rules and types
	node_modules/.bin/biome check .
	node_modules/.bin/tsc --noEmit
	node_modules/.bin/tsc --noEmit -p src/console/page

format: node_modules/.installed ## Format the sources
	node_modules/.bin/biome check --write .

test: build ## Run the tests
	@# The limit is for tests that hang: a slow machine fails none by time alone. Two at a time: most of them wait.
	$(BUN) test/support/run-tests.ts --parallel=2 --timeout 60000

# Tests that start neither the executable nor a database server.
FAST := test/house test/lib test/scan test/config.test.ts test/log.test.ts test/flags/evaluate test/flags/operators test/flags/rules

test-fast: node_modules/.installed ## Run the rules and house tests: no executable, under a minute
	$(BUN) test/support/run-tests.ts --timeout 60000 $(FAST)

clickhouse: node_modules/.installed ## Install the ClickHouse engine that some tests need, 543 MB
	npm install --prefix test/support/clickhouse --no-save --no-audit --no-fund --ignore-scripts

test-crash: build ## Run the crash tests for longer (ROUNDS=200)
	FLAGKEEP_TEST_CRASH_ROUNDS=$(or $(ROUNDS),200) $(BUN) test test/crash --timeout 3600000

test-clickhouse: build ## Run the crash tests of events in ClickHouse for longer (ROUNDS=50)
	FLAGKEEP_TEST_CLICKHOUSE_ROUNDS=$(or $(ROUNDS),50) $(BUN) test test/crash/clickhouse.test.ts --timeout 3600000

SDKS_OF_FRONTS := posthog-node posthog-node-flags posthog-js posthog-python posthog-go openfeature openfeature-python

test-cluster: build ## Run the SDKs over two nodes; kill nodes, the leader and PostgreSQL's primary (ROUNDS=50)
	FLAGKEEP_TEST_FRONTS=2 $(BUN) test $(SDKS_OF_FRONTS:%=test/sdk/%.test.ts) --timeout 120000
	FLAGKEEP_TEST_CLUSTER_ROUNDS=$(or $(ROUNDS),50) $(BUN) test test/cluster/failover.test.ts --timeout 3600000
	FLAGKEEP_TEST_PARTITION_ROUNDS=$(or $(ROUNDS),50) $(BUN) test test/cluster/partition-faults.test.ts --timeout 3600000

test-budgets: build ## Enforce the console's performance budgets (EVENTS=1000000; needs Chromium)
	FLAGKEEP_TEST_BUDGETS=1 FLAGKEEP_TEST_BUDGET_EVENTS=$(or $(EVENTS),100000) $(BUN) test --timeout 600000 test/console/budgets.test.ts

test-random: build ## Run property-based tests with new and more random cases (RUNS=10)
	FLAGKEEP_TEST_SEED=random FLAGKEEP_TEST_RUNS=$(or $(RUNS),10) $(BUN) test --timeout 3600000

kill-test: build ## Kill the server under load and count lost and duplicate events (ROUNDS=50 ADAPTER=flagkeep)
	$(BUN) test/kill-test/run.ts --rounds $(or $(ROUNDS),50) --adapter $(or $(ADAPTER),flagkeep)

prove: build ## Run endurance tests for hours; resumes after an interruption (PROVE=kill SHARE=0.1)
	$(BUN) test/prove/run.ts

mutation: node_modules/.installed ## Run mutation tests of the rules (MUTANTS=500 SEED=1)
	$(BUN) test/mutation/run.ts

test-sdk: build ## Run the SDK snippets of all languages, including the slow ones
	FLAGKEEP_TEST_SDKS=1 $(BUN) test test/sdk --timeout 1200000

audit: node_modules/.installed ## Check the packages in the executables for known vulnerabilities
	@$(BUN) deploy/audit.ts

check: static audit test ## Check format, lint, types, packages and tests

bench: build ## Run benchmarks (ROUNDS=3 SECONDS=5 ONLY=batch)
	$(BUN) test/bench/run.ts

bench-flood: build ## Measure the effect of one project's flood on another project (ROUNDS=3 SECONDS=5)
	$(BUN) test/bench/flood.ts

bench-backups: build ## Measure the effect of backups on captures and flags (EVENTS=1000000)
	$(BUN) test/bench/backups.ts

bench-disk-space: build ## Measure disk space of events and persons, compared with Parquet (EVENTS=1000000)
	$(BUN) test/bench/disk-space.ts

bench-queries: node_modules/.installed ## Measure insights, compared with hand-written typed columns (EVENTS=3000000 ROUNDS=5)
	mkdir -p dist
	$(BUN) test/bench/queries.ts

bench-statements: node_modules/.installed ## Run 22 typical statements at the default limits (EVENTS=10000000)
	mkdir -p dist
	$(BUN) test/bench/statements.ts

bench-experiments: node_modules/.installed ## Measure the results of an experiment over 10 million events (EVENTS=10000000 ROUNDS=3)
	mkdir -p dist
	USERS=$(or $(USERS),500000) $(BUN) test/bench/experiments.ts

bench-cluster: build ## Measure a new node of a cluster with many persons as rows (PERSONS=1000000 ROUNDS=5)
	$(BUN) test/bench/cluster.ts

bench-workers: build ## Measure how HTTP workers scale, each with a fifth of a CPU (ROUNDS=3 SECONDS=5; needs root)
	$(BUN) test/bench/workers.ts

bench-peers: build ## Measure Redis and PostgreSQL with the same events, if installed
	$(BUN) test/bench/peers.ts

bench-flag-peers: build ## Measure flags, compared with GO Feature Flag's relay proxy, if installed
	$(BUN) test/bench/flag-peers.ts

soak: build ## Run an hour at half of the peak rate, with dashboards, Overview and backups (SOAK_MINUTES=60)
	$(BUN) test/bench/soak.ts

pictures: build ## Update the README's pictures of the console (needs Chromium)
	$(BUN) deploy/pictures.ts

clean: ## Remove build results and installed packages
	rm -rf dist node_modules
