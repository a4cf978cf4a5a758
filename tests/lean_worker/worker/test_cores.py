"""Cores of a container are those of its quota."""

from __future__ import annotations

import os

import pytest

from lean_worker.cores import available_cores, quota_cores


@pytest.mark.parametrize(
    ("words", "cores"),
    [
        ("400000 100000", 4.0),
        ("50000 100000", 0.5),
        ("max 100000", None),
        ("-1 100000", None),
        ("", None),
        ("1 0", None),
    ],
)
def test_quota_of_both_cgroup_versions(words: str, cores: float | None) -> None:
    assert quota_cores(words) == cores


def test_at_least_one_and_no_more_than_the_machine_has() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(("words", "cores"), [("50000 100000", 1), ("99900000 100000", os.cpu_count())])
def test_small_and_large_quotas_are_bounded(monkeypatch: pytest.MonkeyPatch, words: str, cores: int) -> None:
    monkeypatch.setattr("lean_worker.cores._read", lambda path: words)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(os.cpu_count() or 1)), raising=False)
    assert available_cores() == cores
