"""What no candidate can show from outside: memory is pristine, and the kernel refuses forged declarations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lean_worker.engines.embedded.identity import HOST
from lean_worker.engines.embedded.layout import Installation, node_executable
from lean_worker.engines.embedded.snapshots import ensure_snapshot

pytestmark = [pytest.mark.lean, pytest.mark.slow]


@pytest.fixture(scope="module")
def report(installation: Installation) -> dict[str, Any]:
    import asyncio

    snapshot = asyncio.run(ensure_snapshot(installation, ("Init",)))
    options = {"host": HOST, "js": installation.js, "wasm": installation.wasm, "snapshot": snapshot}
    command = [node_executable(), Path(__file__).with_name("inside.js"), json.dumps(options, default=str)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_every_word_of_memory_is_pristine_after_a_check(report: dict[str, Any]) -> None:
    assert report["afterCheck"] == [0, 0, 0]
    assert report["afterReset"] == 0


def test_the_comparison_sees_what_a_candidate_writes(report: dict[str, Any]) -> None:
    assert min(report["afterRun"]) > 1000


@pytest.mark.parametrize(
    ("forgery", "answer"),
    [
        ("honest", "accepted"),
        ("wrongProof", "(kernel) declaration type mismatch: t"),
        ("notAProposition", "(kernel) theorem type is not a proposition: t"),
        ("byItself", "t depends on itself"),
        ("unknown", "unknown constant nowhere"),
        ("unsafe", "f is unsafe"),
        ("wrongDefinition", "(kernel) declaration type mismatch: f"),
        ("orphanRecursor", "r belongs to no inductive type"),
    ],
)
def test_the_kernel_decides_about_forged_declarations(report: dict[str, Any], forgery: str, answer: str) -> None:
    assert report["forged"][forgery] == answer


def test_a_loose_variable_is_refused(report: dict[str, Any]) -> None:
    assert report["forged"]["looseVariable"] != "accepted"
