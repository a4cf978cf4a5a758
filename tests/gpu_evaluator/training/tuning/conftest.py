"""Tiny base models; tests that use one need torch and transformers, which `make test-train` brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu_evaluator.training.tuning.tiny import labels, write_lines, write_modernbert, write_qwen3

REASON = "run by `make test-train`"


@pytest.fixture(scope="session")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason=REASON).set_num_threads(1)
    pytest.importorskip("transformers", reason=REASON)
    return write_qwen3(tmp_path_factory.mktemp("base") / "qwen3")


@pytest.fixture(scope="session")
def modernbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason=REASON).set_num_threads(1)
    pytest.importorskip("transformers", reason=REASON)
    return write_modernbert(tmp_path_factory.mktemp("base") / "modernbert")


@pytest.fixture(scope="session")
def some_labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("labels") / "labels.jsonl", labels(10))
