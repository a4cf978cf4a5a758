"""Fixtures that more than one package's tests use."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT.parent / "shared" / "cases"


def load_cases(name: str) -> list[dict[str, Any]]:
    """Acceptance cases that live beside the checkout; an empty list where it stands alone."""
    path = CASES / name
    if not path.is_file():
        return []
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases


@pytest.fixture(autouse=True)
def logs_of_its_own() -> Iterator[None]:
    """A command that runs in this process logs to the standard error of its test, which is closed afterwards."""
    yield
    structlog = sys.modules.get("structlog")  # the environments of the trainers have none
    if structlog is not None:
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT
