"""What a certificate is about, as plain data; the same shapes as in `lean/LeanReward/Rollout.lean`.

Names become numbers: commands are compared by their normal form only, so any numbering that keeps equality will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

Visit = tuple[int, int]
"""A node and the index of its visit."""


class Decision(Enum):
    STAY = "stay"
    ADVANCE = "advance"
    LOOP_BACK = "loopBack"


class Answer(Enum):
    SUPPORT = "support"
    CONTRADICTION = "contradiction"
    INSUFFICIENT = "insufficient"


class Link(Enum):
    """What one simple command of a chain does."""

    NOOP = "noop"
    CONSTANT_PRINT = "constantPrint"
    OTHER = "other"


class Statement(Enum):
    """What one top-level statement of a script does."""

    LITERAL_PRINT = "literalPrint"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Transitions:
    entry: int
    forward: Sequence[tuple[int, int]]
    back: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Row:
    decision: Decision
    node: int
    visit: int


@dataclass(frozen=True, slots=True)
class Ballot:
    available: bool
    chunks: Sequence[Answer]
    quote: int | None
    """The turn at which the quoted evidence stands in the view that was shown."""
    segment_end: int


@dataclass(frozen=True, slots=True)
class Given:
    """A beta from the caller; None for an unannotated stage."""

    beta: int | None


@dataclass(frozen=True, slots=True)
class Judged:
    """What code decided of the requirements, and the replicas' judgements of the rest."""

    checks: Sequence[bool]
    ballots: Sequence[Ballot] | None
    """None when code decides every requirement."""


Evidence = Given | Judged


@dataclass(frozen=True, slots=True)
class Action:
    is_shell: bool
    text: int
    chain: Sequence[Link]
    script: Sequence[Statement]
    modifies: bool


@dataclass(frozen=True, slots=True)
class Step:
    actions: Sequence[Action]
    is_final: bool
    excused: bool


@dataclass(frozen=True, slots=True)
class Rollout:
    """The execution phase of a rollout: one row and one step a turn, and the evidence of each stage visit."""

    alpha: int
    rows: Sequence[Row]
    steps: Sequence[Step]
    evidence: Sequence[tuple[Visit, Evidence]]


@dataclass(frozen=True, slots=True)
class Answers:
    """What was answered about a rollout, and is to be certified."""

    legal: bool
    betas: Sequence[int | None]
    """For each entry of the rollout's evidence."""
    rules: Sequence[Sequence[int]]
    """For each step, the penalty rules that fire, in increasing order."""
    reward_tenths: Sequence[int]
    """For each step, r * 10."""
