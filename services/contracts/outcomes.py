"""The enumerated words of a result: verdict, source, reason, Lean status.

They are the same on the wire, in metrics, in logs and in the queue (`docs/api.md`).
"""

from __future__ import annotations

from enum import Enum


class _Word(str, Enum):
    """A string enumeration whose members print as their value (``enum.StrEnum`` needs Python 3.11)."""

    def __str__(self) -> str:
        return str(self.value)


class Verdict(_Word):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Source(_Word):
    """Who decided a verdict."""

    PRECHECK = "precheck"
    LEAN = "lean"
    CASCADE = "cascade"
    FALLBACK = "fallback"


class LeanStatus(_Word):
    """What became of a candidate's Lean check.

    ``ok``: Lean answered, the verdict is its own. ``timeout``: the wall-clock watchdog fired. ``cancelled``: stopped at
    the cutoff. ``crashed``: our infrastructure failed (a worker died twice). ``unavailable``: no worker took it.
    ``skipped``: Lean was not asked (precheck failure, or mode ``evaluator``).
    """

    OK = "ok"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    CRASHED = "crashed"
    UNAVAILABLE = "unavailable"
    SKIPPED = "skipped"


class Reason(_Word):
    """Why a verdict is what it is; one code for each kind of fault."""

    OK = "ok"
    # Decided by the precheck, deterministic and textual.
    TOO_LONG = "too_long"
    NO_CODE = "no_code"
    NO_THEOREM = "no_theorem"
    FORBIDDEN_CONSTRUCT = "forbidden_construct"
    HEADER_MISMATCH = "header_mismatch"
    MISPLACED_IMPORT = "misplaced_import"
    # Decided by Lean.
    COMPILE_ERROR = "compile_error"
    HEARTBEATS = "heartbeats"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    KERNEL_REJECTED = "kernel_rejected"
    PLACEHOLDER = "placeholder"
    AXIOM = "axiom"
    STATEMENT_MISMATCH = "statement_mismatch"
    STATEMENT_INVALID = "statement_invalid"
    # Decided by the learned evaluators.
    GATE_REJECTED = "gate_rejected"
    FEEDBACK_ERROR = "feedback_error"
    EVALUATOR_DISTRUSTED = "evaluator_distrusted"
    # Nothing decided.
    LEAN_TIMEOUT = "lean_timeout"
    NOT_DECIDED = "not_decided"
    INFRASTRUCTURE = "infrastructure"


class Profile(_Word):
    """A precheck policy: ``paper`` is Appendix B of learning-lean-feedback, ``strict`` adds to it."""

    PAPER = "paper"
    STRICT = "strict"
