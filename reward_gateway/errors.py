"""What a route raises to answer with a problem document; the evaluator's server has the same."""

from __future__ import annotations

from services.runtime.problems import MAX_FAULTS, ProblemError, printable

__all__ = ["MAX_FAULTS", "ProblemError", "printable"]
