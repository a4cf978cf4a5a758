# Set-up, demonstration and tests. Works on a machine with Python 3.10 or later, git and make, and in a path with spaces.
SHELL := /bin/sh
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-trainers check lock clean help

help:
	@echo "make demo   install, fetch the embedded Lean, start everything, score examples/proofs.jsonl, stop"
	@echo "make test   the same set-up, then every test"
	@echo "make test-trainers  the adapters against verl, OpenRLHF, TRL, verifiers and the client of Kimina"
	@echo "make check  ruff and mypy"
	@echo "make lock   renew requirements.lock"

# The lock pins every version; the ranges stand in pyproject.toml.
$(STAMP): pyproject.toml requirements.lock
	test -x "$(BIN)/python" || $(PYTHON) -m venv "$(VENV)"
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check -r requirements.lock
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch "$(STAMP)"

demo: $(STAMP)
	"$(BIN)/lean-reward" lean install
	"$(BIN)/lean-reward" up --port 0 -- "$(BIN)/lean-reward" score examples/proofs.jsonl --lean-timeout 12 --output .demo/results.jsonl

test: $(STAMP)
	"$(BIN)/lean-reward" lean install
	"$(BIN)/python" -m pytest $(PYTEST_ARGS)

# The real trainers and Kimina's client, each in an environment of its own under .test-venvs (about 6 GB in all).
test-trainers: $(STAMP)
	"$(BIN)/lean-reward" lean install
	"$(BIN)/python" tests/trainers/run.py $(TRAINERS)

check: $(STAMP)
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/mypy"

lock: $(STAMP)
	"$(BIN)/python" -m pip install --quiet uv
	"$(BIN)/uv" pip compile --quiet --no-header --no-emit-index-url --no-emit-find-links --universal --python-version 3.10 --extra dev --output-file requirements.lock pyproject.toml

clean:
	rm -rf "$(VENV)" .demo
