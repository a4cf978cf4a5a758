"""What `lean-reward evaluate --json` prints, and `lean-reward report` reads: an evaluator measured against Lean.

The tables are those of learning-lean-feedback, Section 5 and Appendix G. A rate that is undefined for want of its class
is null. Intervals are 95% by the cluster bootstrap, as [low, high].
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from services.contracts.base import Wire
from services.contracts.evaluator import Confusion

Interval = tuple[float, float]


class PrecisionAt(Wire):
    """Equation 12: precision where this fraction of the candidates is valid."""

    prevalence: float = Field(ge=0, le=1)
    precision: float | None


class Measured(Wire):
    """One way to a verdict, measured on the test programs: a row of Table 3."""

    name: str
    threshold: float | None = Field(default=None, description="Of the gate; null where it is the evaluator's own.")
    selected: str | None = Field(default=None, description="How the threshold was selected on validation programs.")
    confusion: Confusion
    accuracy: float
    accuracy_interval: Interval | None
    accuracy_gain: float | None = Field(default=None, description="Over the first row.")
    accuracy_gain_interval: Interval | None = Field(default=None, description="From the same resamples, so paired.")
    f1: float
    macro_f1: float
    mcc: float
    mcc_interval: Interval | None
    auroc: float | None = Field(default=None, description="Null for a binary decision.")
    auroc_interval: Interval | None = None
    recall: float | None = Field(description="True-positive rate.")
    false_positive_rate: float | None
    precision_at: tuple[PrecisionAt, ...] = ()


class GroupAccuracy(Wire):
    """Accuracy on the programs of one prover or one benchmark: a row of Table 4."""

    by: Literal["prover", "benchmark"]
    name: str
    programs: int
    valid: int
    accuracy: dict[str, float] = Field(description="By the name of the way to the verdict.")


class FeedbackQuality(Wire):
    """Means of the four metrics of Appendix D: a row of Table 5."""

    subset: Literal["all", "valid", "invalid"]
    programs: int
    block_f1: float
    anchored_block_f1: float
    token_f1: float
    error_agreement: float
    blocks: float | None = Field(description="Predicted blocks for each block of Lean's; null where Lean has none.")


class SourceAudit(Wire):
    """How many traces copy their program: wholly, up to where they end, or otherwise (Appendix B)."""

    full: int
    prefix: int
    other: int


class Acceptance(Wire):
    """What became of the invalid programs that the feedback model annotated (Appendix B)."""

    predicted_error: int
    rejected_otherwise: int
    accepted: int


class Coverage(Wire):
    """After `budget` checks in each pool: the calls spent, and the pools in which a valid proof was found."""

    budget: int
    calls: float
    random: float
    gate: float
    cascade: float


class ReplayedPools(Wire):
    """The budgeted compilation replay of Appendix G on one benchmark, or on `all`."""

    benchmark: str
    pools: int
    pools_with_valid: int
    mean_size: float
    coverage: tuple[Coverage, ...]


class Throughput(Wire):
    """Of the evaluator on these programs, asked for all at once, validation included."""

    programs: int
    seconds: float
    programs_per_s: float


class EvaluationReport(Wire):
    """An evaluator measured on labelled programs."""

    evaluator: str
    toolchain: str | None = None
    programs: int
    valid: int
    problems: int = Field(description="Clusters of the bootstrap.")
    validation_programs: int = 0
    left_out: dict[str, int] = Field(
        default_factory=dict, description="Labelled programs that are not measured, by why."
    )
    resamples: int
    seed: int
    verdicts: tuple[Measured, ...]
    groups: tuple[GroupAccuracy, ...] = ()
    feedback: tuple[FeedbackQuality, ...] = ()
    source: SourceAudit | None = None
    acceptance: Acceptance | None = None
    replay: tuple[ReplayedPools, ...] = ()
    throughput: Throughput | None = None
