"""Certificates' data written as Lean terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from services.process.certificates.claims import (
    Action,
    Answers,
    Ballot,
    Evidence,
    Given,
    Rollout,
    Row,
    Step,
    Transitions,
    Visit,
)
from services.rewards.band import PassRate

T = TypeVar("T")


def boolean(value: bool) -> str:
    return "true" if value else "false"


def integer(value: int) -> str:
    return f".ofNat ({natural(value)})" if value >= 0 else f".negSucc ({natural(-1 - value)})"


def natural(value: int) -> str:
    """A raw literal, which needs no instance to be elaborated. Raises ValueError for a negative number."""
    if value < 0:
        raise ValueError(f"{value} is not a natural number")
    return f"nat_lit {value}"


def sign(value: int) -> str:
    """Raises ValueError unless the value is -1 or 1."""
    if value not in (-1, 1):
        raise ValueError(f"{value} is neither -1 nor 1")
    return ".plus" if value == 1 else ".minus"


def optional(value: T | None, term: Callable[[T], str]) -> str:
    return "none" if value is None else f"(some ({term(value)}))"


def sequence(values: Iterable[T], term: Callable[[T], str]) -> str:
    return "[" + ", ".join(map(term, values)) + "]"


def pair(value: tuple[int, int]) -> str:
    return f"({natural(value[0])}, {natural(value[1])})"


def transitions(value: Transitions) -> str:
    return f"⟨{natural(value.entry)}, {sequence(value.forward, pair)}, {sequence(value.back, pair)}⟩"


def row(value: Row) -> str:
    return f"⟨.{value.decision.value}, {natural(value.node)}, {natural(value.visit)}⟩"


def ballot(value: Ballot) -> str:
    chunks = sequence(value.chunks, lambda answer: f".{answer.value}")
    return f"⟨{boolean(value.available)}, {chunks}, {optional(value.quote, natural)}, {natural(value.segment_end)}⟩"


def evidence(value: Evidence) -> str:
    if isinstance(value, Given):
        return f".given {optional(value.beta, sign)}"
    checks = sequence(value.checks, boolean)
    return f".decided {checks}" if value.ballots is None else f".judged {checks} {sequence(value.ballots, ballot)}"


def action(value: Action) -> str:
    chain = sequence(value.chain, lambda link: f".{link.value}")
    script = sequence(value.script, lambda statement: f".{statement.value}")
    return f"⟨{boolean(value.is_shell)}, {natural(value.text)}, {chain}, {script}, {boolean(value.modifies)}⟩"


def step(value: Step, visit: Visit) -> str:
    actions = sequence(value.actions, action)
    return f"⟨{actions}, {boolean(value.is_final)}, {boolean(value.excused)}, {pair(visit)}⟩"


def rollout(value: Rollout) -> str:
    steps = ((item, (place.node, place.visit)) for item, place in zip(value.steps, value.rows, strict=True))
    proofs = sequence(value.evidence, lambda entry: f"({pair(entry[0])}, {evidence(entry[1])})")
    return f"⟨{sign(value.alpha)}, {sequence(value.rows, row)}, {sequence(steps, lambda item: step(*item))}, {proofs}⟩"


def claim(graph: Transitions, record: Rollout, rate: PassRate, answers: Answers) -> str:
    betas = sequence(answers.betas, lambda beta: optional(beta, sign))
    rules = sequence(answers.rules, lambda fired: sequence(fired, natural))
    rewards = sequence(answers.reward_tenths, integer)
    group = f"⟨{natural(rate.passed)}, {natural(rate.known)}⟩"
    return f"⟨{transitions(graph)}, {rollout(record)}, {group}, {boolean(answers.legal)}, {betas}, {rules}, {rewards}⟩"
