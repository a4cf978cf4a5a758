"""From the host's replies to answers: which of the ends of a check it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_worker.engines.embedded.answer import read_answer, without_proof
from services.contracts.lean import CheckStatus

BUDGET = {"severity": "error", "data": "(deterministic) timeout", "kind": "runtime.maxHeartbeats", "pos": None}
MISTAKE = {"severity": "error", "data": "wrong", "kind": None, "pos": {"line": 1, "column": 0}}
GOOD = {"name": "t", "found": True, "kind": "theorem", "kernelAccepts": True}


def reply(**parts: Any) -> dict[str, Any]:
    return {"status": "done", "poked": False, "messages": [], "target": GOOD, **parts}


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({}, CheckStatus.DONE),
        ({"messages": [MISTAKE]}, CheckStatus.DONE),
        ({"messages": [BUDGET]}, CheckStatus.HEARTBEATS),
        ({"messages": [BUDGET, MISTAKE]}, CheckStatus.DONE),
        ({"kernelOutOfBudget": True}, CheckStatus.HEARTBEATS),
        # The watchdog words itself as an exhausted budget; only the host knows that it fired.
        ({"messages": [BUDGET], "poked": True}, CheckStatus.TIMEOUT),
        ({"messages": [MISTAKE], "poked": True}, CheckStatus.TIMEOUT),
        ({"kernelOutOfBudget": True, "target": {**GOOD, "kernelAccepts": False}, "poked": True}, CheckStatus.TIMEOUT),
        ({"target": None, "statementError": "slow", "poked": True}, CheckStatus.TIMEOUT),
        # It fired, and the check came out right all the same.
        ({"poked": True}, CheckStatus.DONE),
        ({"status": "timeout"}, CheckStatus.TIMEOUT),
        ({"status": "crashed"}, CheckStatus.CRASHED),
        ({"status": "crashed", "poked": True}, CheckStatus.TIMEOUT),
        ({"status": "out_of_memory"}, CheckStatus.OUT_OF_MEMORY),
    ],
)
def test_how_a_check_ended(parts: dict[str, Any], status: CheckStatus) -> None:
    assert read_answer(reply(**parts), 0.1).status is status


@given(st.sampled_from(["theorem t : 1 = 1", "theorem t (n : Nat := 3) : n = n", "theorem t : (let x := 1; x) = 1"]))
def test_only_the_proof_is_cut_from_a_statement(statement: str) -> None:
    for ending in ("", ":=", " := by", ":= sorry", "\n  := by\n  sorry\n", " "):
        assert without_proof(statement + ending).rstrip() == statement
