# Everything a developer or a CI machine runs. Needs Python >= 3.11, make, and a network to the
# package registries; the rest is installed into .venv and a cache outside the tree.
#
#   make demo     a real control plane with 100 simulated nodes, the scheduler, and 500 pods
#   make test     checks, unit, property and integration tests
#   make simulate      whole daemons under faults, on virtual time
#   make conformance   decisions beside kube-scheduler's own, recorded and fresh
#   make e2e      Kubernetes' own specs for scheduling, beside kube-scheduler
#   make chaos    everything goes wrong at once, and an auditor says what came of it
#   make help     all targets

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
IMAGE  ?= k8s-scheduler:$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' k8s_scheduler/__init__.py)

.DEFAULT_GOAL := help
.PHONY: help install demo down test check fix unit property integration testbed oracle conformance baseline simulate e2e bench bench-states profile bench-core build image lock audit sbom shadow-check fairness tenants stories helm-check restore-check reloads fuzz mutants chaos soak upgrade-check clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

install: $(STAMP) ## install what the project needs into .venv

$(STAMP): requirements.lock requirements-dev.lock pyproject.toml tools/install.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/install.sh
	@touch $(STAMP)

demo: $(STAMP) ## show it at work (KEEP=1 leaves it running, ONCE=1 ends by itself)
	@$(BIN)/python -m testbed.demo $(if $(filter-out 0,$(KEEP)),--keep) $(if $(filter-out 0,$(ONCE)),--once)

down: $(STAMP) ## stop what KEEP=1 left running
	@$(BIN)/python -m testbed down

test: check unit property integration ## everything CI runs

check: $(STAMP) ## format, lint, types, layers, manifests, Dockerfile
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/yamllint --strict .
	$(BIN)/shellcheck .ci/run tools/*.sh
	$(BIN)/hadolint Dockerfile

fix: $(STAMP) ## format, and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

unit: $(STAMP) ## unit tests, under a minute
	$(BIN)/pytest tests/unit

property: $(STAMP) ## property tests, recorded decisions of kube-scheduler, 200 simulated runs, a little fuzzing
	$(BIN)/pytest tests/property tests/conformance tests/simulation tests/fuzz tests/tenants

fuzz: $(STAMP) ## hostile configurations, pods and nodes: COUNT (20000) of each, LIMITS (2000) objects at the API's limits, SEED (1), MINUTES (120)
	$(BIN)/python -m tests.fuzz configs --count $(or $(COUNT),20000) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.fuzz objects --count $(or $(COUNT),20000) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.fuzz limits --count $(or $(LIMITS),2000) --seed $(or $(SEED),1) --minutes $(or $(MINUTES),120)

mutants: $(STAMP) ## one token of core or kube changed by chance, and whether a test notices: COUNT (20), SEED (1), ONLY="file folder file:line", MINUTES (10) for each
	$(BIN)/python -m tests.mutants --count $(or $(COUNT),20) --seed $(or $(SEED),1) $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

tenants: $(STAMP) ## every known way to harm other namespaces, at 5,000 nodes, and what it costs them: ONLY=text, JOBS=n, NODES=n
	$(BIN)/python -m tests.tenants $(if $(ONLY),--only "$(ONLY)") $(if $(JOBS),--jobs $(JOBS)) $(if $(NODES),--nodes $(NODES))

testbed: $(STAMP) ## build the control plane (once; cached outside the tree)
	$(BIN)/python -m testbed build

integration: testbed ## tests on a real API server
	$(BIN)/pytest tests/integration

reloads: testbed ## change the configuration under load, RELOADS=200/50 (good/bad) times
	RELOADS=$(or $(RELOADS),200/50) $(BIN)/pytest tests/integration/test_reload.py -k good_and_bad --log-cli-level=INFO

restore-check: testbed ## put etcd back to an older state under the running daemon, in every way
	RESTORE_CHECK=1 $(BIN)/pytest tests/integration/test_restored_etcd.py --log-cli-level=INFO

oracle: $(STAMP) ## build kube-scheduler's own framework as an oracle (once; cached outside the tree)
	$(BIN)/python -m tests.conformance.oracle.building

conformance: $(STAMP) ## all recorded decisions, and SEEDS=n (3) fresh ones from the oracle
	$(BIN)/python -m tests.conformance.check --seeds $(or $(SEEDS),3) $(if $(FIRST_SEED),--first-seed $(FIRST_SEED))

baseline: $(STAMP) ## which decisions another kube-scheduler makes otherwise: VERSION=v1.36.4
	@test -n "$(VERSION)" || { echo "say which: make baseline VERSION=v1.36.4" >&2; exit 2; }
	$(BIN)/python -m tests.conformance.baseline $(VERSION)

simulate: $(STAMP) ## whole daemons under faults on virtual time: SEEDS=n (1000), FIRST_SEED=s, JOBS=n, PLANTED=bug, VERBOSE=1
	@$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),1000) $(if $(FIRST_SEED),--first-seed $(FIRST_SEED)) $(if $(JOBS),--jobs $(JOBS)) $(if $(PLANTED),--planted $(PLANTED)) $(if $(filter-out 0,$(VERBOSE)),--verbose)

e2e: testbed ## Kubernetes' own specs for scheduling, with kube-scheduler and this (FOCUS=regexp, SEED=n)
	@$(BIN)/python -m testbed.e2e $(if $(FOCUS),--focus "$(FOCUS)") $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

chaos: testbed ## faults by a plan on a real control plane, and an auditor: MINUTES=n (3), SEED=n (1)
	@$(BIN)/python -m testbed.chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

bench: testbed ## this scheduler, kube-scheduler and a null binder side by side: NODES, PODS, REPEATS, WORKLOADS, CONTESTANTS="ours kube", FULL=1, BATCH="1/10 64/10", OUT=file.json, PLOTS=docs/benchmarks
	$(BIN)/python -m testbed.bench $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) $(if $(REPEATS),--repeats $(REPEATS)) $(foreach name,$(WORKLOADS),--workload $(name)) $(foreach name,$(CONTESTANTS),--only $(name)) $(foreach batch,$(BATCH),--batch $(batch)) $(if $(filter-out 0,$(FULL)),--full) $(if $(OUT),--out $(OUT)) $(if $(PLOTS),--plots $(PLOTS))

bench-states: testbed ## many bound pods, many unschedulable ones, many nodes: STATES, NODES, PODS, REPEATS, MINUTES, OUT=file.json
	$(BIN)/python -m testbed.bench.states $(foreach name,$(STATES),--state $(name)) $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) $(if $(REPEATS),--repeats $(REPEATS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(OUT),--out $(OUT))

upgrade-check: testbed ## this version and another one take over from each other under load: FROM=revision
	@test -n "$(FROM)" || { echo "say which: make upgrade-check FROM=v0.1.0" >&2; exit 2; }
	$(BIN)/python -m testbed.upgrade --from $(FROM)

soak: testbed ## hours of churn under a memory ceiling, and the curve: HOURS=n (2), SEED=n, OUT=file.json
	$(BIN)/python -m testbed.soak $(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED)) $(if $(OUT),--out $(OUT))

shadow-check: testbed ## k8s-scheduler shadow beside kube-scheduler: NODES, PODS, OUT=file.json
	$(BIN)/python -m testbed.shadow_check $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) $(if $(OUT),--out $(OUT))

fairness: testbed ## what others lose while one namespace's Bindings fail for ever: PODS, SICK, ROUNDS
	$(BIN)/python -m testbed.fairness $(if $(PODS),--pods $(PODS)) $(if $(SICK),--sick $(SICK)) $(if $(ROUNDS),--rounds $(ROUNDS))

stories: testbed ## what holds pods back, told to kube-scheduler and to this scheduler: ONLY=text
	$(BIN)/python -m testbed.stories $(if $(ONLY),--only "$(ONLY)") $(if $(filter-out 0,$(TEXTS)),--texts)

helm-check: testbed ## the chart with real helm: lint, renderings, releases on a real API server
	@$(BIN)/python -m testbed.helm

profile: testbed ## a flame graph of the daemon under load: WORKLOAD, NODES, PODS, OUT=file.svg
	$(BIN)/python -m testbed.bench.profiling $(if $(WORKLOAD),--workload $(WORKLOAD)) $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) $(if $(OUT),--out $(OUT))

bench-core: $(STAMP) ## CPU per decision of the core: 5,000 and 15,000 nodes, OUT=file.json
	$(BIN)/python -m tests.bench.core_speed $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) $(if $(OUT),--out $(OUT))
	$(BIN)/python -m tests.bench.core_memory

build: $(STAMP) ## the wheel, into dist/
	$(BIN)/uv build --wheel --no-build-isolation --out-dir dist

image: ## the container image, with docker, podman or buildah
	@sh tools/image.sh "$(IMAGE)"

lock: $(STAMP) ## resolve the dependencies anew
	@VENV="$(VENV)" sh tools/lock.sh

audit: $(STAMP) ## known vulnerabilities of what is locked, and a look through the tree (needs the internet)
	@VENV="$(VENV)" sh tools/audit.sh

sbom: $(STAMP) ## what the image holds of packages, as CycloneDX JSON: OUT=file (dist/k8s-scheduler.cdx.json)
	@VENV="$(VENV)" sh tools/sbom.sh $(OUT)

clean: ## remove what was built here (not the cache of the test bed)
	rm -rf $(VENV) .audit dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .conformance .e2e .fuzz .chaos
