"""Fixtures that more than one package's tests use."""

from __future__ import annotations

import json
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


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT
