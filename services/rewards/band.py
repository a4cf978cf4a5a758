"""The pass rate of a group and the band of it in which process rewards apply (Lean4AgenticRL, equation 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class PassRate:
    """How many of the rollouts whose alpha is known have alpha = 1."""

    passed: int
    known: int

    @property
    def value(self) -> Fraction | None:
        """p, exactly; None when no alpha of the group is known."""
        return Fraction(self.passed, self.known) if self.known else None

    @property
    def in_process_band(self) -> bool:
        """Whether p is 0 or at least 75%; compared as whole numbers. False when no alpha is known."""
        return self.known > 0 and (self.passed == 0 or 4 * self.passed >= 3 * self.known)


def pass_rate(alphas: Iterable[int | None]) -> PassRate:
    """The pass rate of one group; an unknown alpha (None) stays out of it. Raises ValueError for another alpha."""
    passed = known = 0
    for alpha in alphas:
        if alpha is None:
            continue
        if alpha not in (-1, 1):
            raise ValueError(f"alpha must be -1, 1 or unknown, not {alpha!r}")
        known += 1
        passed += alpha == 1
    return PassRate(passed, known)
