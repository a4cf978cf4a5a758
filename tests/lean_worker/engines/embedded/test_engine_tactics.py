"""Tactic states: the tactics that stand in the text, with the goals around each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from services.contracts.lean import CheckAnswer

Check = Callable[..., Awaitable[CheckAnswer]]

pytestmark = [pytest.mark.lean, pytest.mark.asyncio(loop_scope="module")]

PROOF = """theorem t (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  constructor
  · exact hp
  · exact hq
"""


async def test_every_tactic_has_its_goals(check: Check) -> None:
    answer = await check(PROOF, tactics=True)
    states = [(t.tactic, t.pos.line, t.pos.column, len(t.goals_before), len(t.goals_after)) for t in answer.tactics]
    assert states == [
        ("constructor", 2, 2, 1, 2),
        ("· exact hp", 3, 2, 2, 1),
        ("exact hp", 3, 4, 1, 0),
        ("· exact hq", 4, 2, 1, 0),
        ("exact hq", 4, 4, 1, 0),
    ]
    assert answer.tactics[0].goals_before == ("p q : Prop\nhp : p\nhq : q\n⊢ p ∧ q",)
    assert answer.tactics[0].goals_after[1] == "case right\np q : Prop\nhp : p\nhq : q\n⊢ q"


async def test_a_failing_tactic_has_no_goals_after_it_yet_the_others_do(check: Check) -> None:
    answer = await check(
        "theorem t (n : Nat) : n = n + 0 ∧ 1 = 2 := by\n  constructor\n  · simp\n  · omega", tactics=True
    )
    assert [t.tactic for t in answer.tactics][:3] == ["constructor", "· simp", "simp"]
    assert "error" in {message.severity.value for message in answer.messages}


async def test_they_are_only_delivered_when_asked_for(check: Check) -> None:
    assert (await check(PROOF)).tactics == ()
