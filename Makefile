# Everything from a fresh machine: `make run` measures and reports, `make test` tests, `make check` lints and types.
# `make setup PYTHON=/path/to/python` builds on another interpreter; an installed ROCm or CUDA torch is kept.
# TORCH_INDEX=URL is where pip finds PyTorch, such as the index for CPUs that its installation page names.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.ready-to-run
STAMP := $(VENV)/.ready
PYTEST := $(BIN)/pytest -n $(shell expr `nproc` + 1) --dist loadfile --no-loadscope-reorder
SITE := build/docs-venv
PLATFORM ?= rocm
SIMULATED = $(BIN)/python -m tests.rocm.machine $(abspath $(BIN))/python -P -m tests.rocm
DOCKER ?= docker

# Bytecode is kept, whatever the environment says: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all external external-quick corpus mutants rocm-sim claims check docs leaderboard image setup clean help

help:
	@grep -E '^# |^[a-z]+:' Makefile | sed 's/:.*//'

run: $(RUN_STAMP)
	$(BIN)/arena run quickstart

# Every module and each mechanism once, in three minutes (the rules for prose and layers are `make check`'s); and everything, as CI does.
test: $(STAMP)
	$(PYTEST) -m "not slow and not external" --ignore tests/test_words.py --ignore tests/test_docs.py --ignore tests/test_layers.py

test-all: $(STAMP)
	$(PYTEST)

# Each adapter against the real judge, in an environment made from its extra alone; needs PyPI.
external: $(STAMP)
	$(BIN)/pytest -m external tests/test_external.py

# The two cheapest of them side by side, as CI does for every change.
external-quick: $(STAMP)
	$(BIN)/pytest -v -n 2 -m external -k "end_to_end and (mcp or openreward)" tests/test_external.py

# Check, on the CPU platform, the tasks and the shipped faults that have changed or whose judge has; the mutants of kernels take longer and can be resumed.
corpus: $(STAMP)
	$(BIN)/python tools/corpus.py
	$(BIN)/python -m tests.verdicts_kept

mutants: $(STAMP)
	$(BIN)/arena tasks check --mutants --resume

# Real HIP and ROCr on a simulated MI300X, as root: simulated, no times. Tables are written to build/rocm-sim. TASKS="softmax gelu" selects tasks, and leaves out doctor and cheats: all of it takes more than an hour on two cores.
rocm-sim: $(STAMP)
	bash tests/rocm/environment.sh
	$(BIN)/pytest -v tests/rocm
	$(if $(TASKS),,$(SIMULATED).doctor --commit `git rev-parse --short HEAD` build/rocm-sim/doctor.json)
	$(if $(TASKS),,$(SIMULATED).cheats --commit `git rev-parse --short HEAD` build/rocm-sim/cheats.json)
	$(SIMULATED).evaluate_tasks --commit `git rev-parse --short HEAD` build/rocm-sim/tasks.json $(TASKS)

# Write every figure of README and docs, and every generated page under reports/, from the kept records.
claims: $(STAMP)
	$(BIN)/python tools/claims.py

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_words.py tests/test_docs.py tests/test_layers.py

# The documentation as a site, in build/site, by an environment of its own; a broken link is an error.
docs: $(SITE)/.ready
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict

# The leaderboard of kept runs, in build/leaderboard.
leaderboard: $(RUN_STAMP)
	mkdir -p build/kept && tar xJf reports/full-h200/records.tar.xz -C build/kept
	$(BIN)/arena site build/kept/full --out build/leaderboard

# A container image for PLATFORM=rocm or cuda; BASE=name@sha256:… pins the base, TORCH_INDEX is where pip finds PyTorch (rocm: required).
image:
	$(DOCKER) build --file containers/$(PLATFORM).Dockerfile --tag unseen-arena:$(PLATFORM) $(foreach name,BASE TORCH_INDEX,$(if $($(name)),--build-arg $(name)=$($(name)))) .

$(SITE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/pip install -q --disable-pip-version-check '.[docs]'
	@touch $@

setup: $(STAMP)

$(RUN_STAMP): pyproject.toml constraints.txt tools/setup.sh
	PYTHON=$(PYTHON) VENV=$(VENV) TORCH_INDEX=$(TORCH_INDEX) bash tools/setup.sh run
	@touch $@

$(STAMP): $(RUN_STAMP)
	PYTHON=$(PYTHON) VENV=$(VENV) bash tools/setup.sh test
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
