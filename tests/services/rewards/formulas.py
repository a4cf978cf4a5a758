"""Equations 1 to 6 of Lean4AgenticRL transcribed as they are printed: slow loops over exact fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class PlainStep:
    stage: int | None  # None: planning
    beta: int | None
    gamma: int


@dataclass
class PlainRollout:
    alpha: int | None
    steps: list[PlainStep] = field(default_factory=list)


def r0(alpha: int, beta: int) -> Fraction:
    indicator = 1 if alpha == 1 else 0
    return alpha + (Fraction(2, 10) + Fraction(3, 10) * indicator) * beta


def r1(alpha: int, beta: int | None, gamma: int) -> Fraction:
    base = Fraction(alpha) if beta is None else r0(alpha, beta)
    return (1 if gamma == -1 else 0) * min(Fraction(-1), base) + (1 if gamma == 0 else 0) * base


def rate(group: list[PlainRollout]) -> Fraction | None:
    known = [rollout for rollout in group if rollout.alpha is not None]
    if not known:
        return None
    return Fraction(sum(1 for rollout in known if rollout.alpha == 1), len(known))


def banded(p: Fraction | None) -> bool:
    return p is not None and (p == 0 or Fraction(75, 100) <= p <= 1)


def r(alpha: int, step: PlainStep, p: Fraction | None) -> Fraction:
    if step.stage is None:
        return Fraction(alpha)
    return r1(alpha, step.beta, step.gamma) if banded(p) else Fraction(alpha)


def z_score(value: Fraction, pool: list[Fraction]) -> float:
    if not pool:
        return 0.0
    mean = sum(pool, Fraction(0)) / len(pool)
    variance = sum(((x - mean) ** 2 for x in pool), Fraction(0)) / len(pool)
    return 0.0 if variance == 0 else float(value - mean) / math.sqrt(variance)


def rows(group: list[PlainRollout], m: int) -> list[list[tuple[Fraction | None, float, float, bool]]]:
    """(r, weight, advantage, unannotated) of every step of one group."""
    p = rate(group)
    known = [rollout for rollout in group if rollout.alpha is not None]
    answer: list[list[tuple[Fraction | None, float, float, bool]]] = []
    for rollout in group:
        row: list[tuple[Fraction | None, float, float, bool]] = []
        for step in rollout.steps:
            if rollout.alpha is None:
                row.append((None, 0.0, 0.0, False))
                continue
            reward = r(rollout.alpha, step, p)
            n = sum(1 for other in rollout.steps if other.stage == step.stage)
            if step.stage is None:
                weight = Fraction(1, len(known) * n)
                pool = [Fraction(other.alpha or 0) for other in known]
                missing = False
            else:
                weight = Fraction(1, len(known) * m * n)
                pool = [
                    r(other.alpha or 0, candidate, p)
                    for other in known
                    for candidate in other.steps
                    if candidate.stage == step.stage and not (banded(p) and candidate.beta is None)
                ]
                missing = banded(p) and step.beta is None
            row.append((reward, float(weight), z_score(reward, pool), missing))
        answer.append(row)
    return answer
