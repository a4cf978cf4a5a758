"""Counting work instead of time: calls of functions, Python's and built-in ones, while something runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest


@pytest.fixture
def count_calls() -> Callable[[Callable[[], object]], int]:
    def count(action: Callable[[], object]) -> int:
        calls = 0

        def profile(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            if event in ("call", "c_call"):
                calls += 1

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            action()
        finally:
            sys.setprofile(before)
        return calls

    return count
