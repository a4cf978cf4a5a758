"""The reward of one step, equations 1 to 3 of Lean4AgenticRL (Section 2.4), exactly.

Every reward of these equations is a whole number of tenths: -12, -10, -8, 5, 10 or 15. All arithmetic is on integers in
tenths; a float appears only when `as_float` writes one down.
"""

from __future__ import annotations

from decimal import Decimal

MINIMUM_TENTHS = -12
MAXIMUM_TENTHS = 15
_PENALTY_CEILING_TENTHS = -10


def stage_tenths(alpha: int, beta: int | None) -> int:
    """r0 in tenths: alpha + (0.2 + 0.3 * [alpha = 1]) * beta (equation 1).

    `beta` None is an unannotated stage, whose r0 is alpha. Raises ValueError unless alpha and beta are -1 or 1.
    """
    _require_sign("alpha", alpha)
    if beta is None:
        return 10 * alpha
    _require_sign("beta", beta)
    return 10 * alpha + (5 if alpha == 1 else 2) * beta


def penalised_tenths(base_tenths: int, gamma: int) -> int:
    """r1 in tenths: r0 for gamma = 0, min(-1, r0) for gamma = -1 (equation 2). Raises ValueError for another gamma."""
    if gamma not in (-1, 0):
        raise ValueError(f"gamma must be -1 or 0, not {gamma!r}")
    return base_tenths if gamma == 0 else min(_PENALTY_CEILING_TENTHS, base_tenths)


def step_tenths(alpha: int, beta: int | None, gamma: int, *, in_band: bool) -> int:
    """r in tenths of an execution step: r1 in the process band, else alpha (equation 3).

    Raises ValueError when alpha, beta or gamma is outside its domain, in or out of the band.
    """
    reward = penalised_tenths(stage_tenths(alpha, beta), gamma)
    return reward if in_band else 10 * alpha


def planning_tenths(alpha: int) -> int:
    """The reward in tenths of a planning step: the outcome alone (Section 2.4)."""
    _require_sign("alpha", alpha)
    return 10 * alpha


def as_decimal(tenths: int) -> Decimal:
    """The reward as an exact decimal number."""
    return Decimal(tenths).scaleb(-1)


def as_float(tenths: int) -> float:
    """The float closest to the exact reward: the one that its decimal literal reads as."""
    return tenths / 10


def _require_sign(name: str, value: int) -> None:
    if value not in (-1, 1):
        raise ValueError(f"{name} must be -1 or 1, not {value!r}")
