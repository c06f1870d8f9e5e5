# Everything from a fresh machine: `make run` measures and reports, `make test` tests, `make check` lints and types.
# `make setup PYTHON=/path/to/python` builds on another interpreter; an installed ROCm or CUDA torch is kept.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: run test test-all corpus mutants check setup clean help

help:
	@grep -E '^# |^[a-z]+:' Makefile | sed 's/:.*//'

run: $(STAMP)
	$(BIN)/arena run quickstart

# Every module and each mechanism once, in three minutes; and everything, as CI does.
test: $(STAMP)
	$(BIN)/pytest -n auto --dist loadfile -m "not slow"

test-all: $(STAMP)
	$(BIN)/pytest -n auto --dist loadfile

# Check every task, on the CPU platform; and the mutants of its kernel, which take longer and can be resumed.
corpus: $(STAMP)
	$(BIN)/arena tasks check --platform cpu

mutants: $(STAMP)
	$(BIN)/arena tasks check --mutants --resume

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_words.py tests/test_docs.py

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/setup.sh
	PYTHON=$(PYTHON) VENV=$(VENV) bash tools/setup.sh
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
