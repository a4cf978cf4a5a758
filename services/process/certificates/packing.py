"""A claim packed into one number, as `lean/LeanReward/Packed.lean` reads it.

A number costs Lean next to nothing to parse, and its kernel computes with numbers of any size in one step: written as
terms of structures and lists the same claim takes several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.process.certificates.claims import (
    Action,
    Answer,
    Answers,
    Ballot,
    Decision,
    Evidence,
    Given,
    Link,
    Rollout,
    Row,
    Statement,
    Step,
    Transitions,
    Visit,
)
from services.rewards.band import PassRate

_DIGIT = 32
"""Bits of everything that has no small bound."""
_DECISIONS = {Decision.STAY: 0, Decision.ADVANCE: 1, Decision.LOOP_BACK: 2}
_SIGNS = {None: 0, -1: 1, 1: 2}
_GIVEN, _DECIDED, _JUDGED = range(3)
_RULES = range(1, 7)
_TENTHS = range(-12, 20)


def claim(graph: Transitions, rollout: Rollout, rate: PassRate, answers: Answers) -> int:
    """The number of a claim. Raises ValueError for values outside their domain."""
    forward, back = ([_joined(arc) for arc in arcs] for arcs in (graph.forward, graph.back))
    stages = [_stage(*entry, beta) for entry, beta in zip(rollout.evidence, answers.betas, strict=True)]
    steps = [
        _step(row, step, rules, tenths)
        for row, step, rules, tenths in zip(
            rollout.rows, rollout.steps, answers.rules, answers.reward_tenths, strict=True
        )
    ]
    widths = [max((number.bit_length() for number in numbers), default=0) for numbers in (stages, steps)]
    header = [int(_outcome(rollout.alpha) == 1), rate.passed, rate.known, answers.legal, graph.entry]
    sections = (
        ([*header, len(forward), len(back), len(stages), len(steps), *widths], _DIGIT),
        ([*forward, *back], 2 * _DIGIT),
        (stages, widths[0]),
        (steps, widths[1]),
    )
    number = at = 0
    for numbers, width in sections:
        number |= _joined(numbers, width) << at
        at += width * len(numbers)
    return number


def _step(row: Row, step: Step, rules: Iterable[int], tenths: int) -> int:
    if tenths not in _TENTHS:
        raise ValueError(f"{tenths} tenths are no reward")
    fired = sum(1 << _rule(rule) - 1 for rule in set(rules))
    low = _DECISIONS[row.decision] | _bits(step.is_final, step.excused) << 2
    digits = [row.node, row.visit, len(step.actions), *map(_action, step.actions)]
    return low | fired << 4 | tenths - _TENTHS.start << 10 | _joined(digits) << 15


def _action(action: Action) -> int:
    links, statements = set(action.chain), set(action.script)
    kinds = (Link.NOOP in links, Link.CONSTANT_PRINT in links, Link.OTHER in links)
    prints = (Statement.LITERAL_PRINT in statements, Statement.OTHER in statements)
    return _bits(action.modifies, *kinds, *prints, action.is_shell) | action.text << 7


def _stage(visit: Visit, evidence: Evidence, beta: int | None) -> int:
    low = _SIGNS[_sign(beta)]
    ballots: list[int] = []
    if isinstance(evidence, Given):
        low |= _GIVEN << 2 | _SIGNS[_sign(evidence.beta)] << 4
    else:
        low |= (_DECIDED if evidence.ballots is None else _JUDGED) << 2
        low |= _bits(True in evidence.checks, False in evidence.checks) << 6
        ballots = [digit for ballot in evidence.ballots or () for digit in _ballot(ballot)]
    return low | _joined([*visit, len(ballots) // 3, *ballots]) << 8


def _ballot(ballot: Ballot) -> tuple[int, int, int]:
    chunks = set(ballot.chunks)
    flags = _bits(
        ballot.available,
        Answer.SUPPORT in chunks,
        ballot.quote is not None,
        Answer.CONTRADICTION in chunks,
        Answer.INSUFFICIENT in chunks,
    )
    return flags, ballot.quote or 0, ballot.segment_end


def _outcome(alpha: int) -> int:
    if alpha not in (-1, 1):
        raise ValueError(f"{alpha} is neither -1 nor 1")
    return alpha


def _sign(value: int | None) -> int | None:
    if value not in _SIGNS:
        raise ValueError(f"{value} is neither -1 nor 1")
    return value


def _rule(rule: int) -> int:
    if rule not in _RULES:
        raise ValueError(f"{rule} is no penalty rule")
    return rule


def _bits(*flags: int) -> int:
    return sum(bool(flag) << position for position, flag in enumerate(flags))


def _joined(numbers: Iterable[int], width: int = _DIGIT) -> int:
    """One number, the first of them lowest. Raises ValueError for one that does not fit."""
    result = 0
    for position, number in enumerate(numbers):
        if number < 0 or number.bit_length() > width:
            raise ValueError(f"{number} does not fit into {width} bits")
        result |= number << position * width
    return result
