"""The learned evaluator: `POST /v1/evaluate`, `GET /readyz` of its service, `GET /v1/evaluator/quality`.

A streamed answer (`application/x-ndjson`) has one `Prediction` line for each program and, where the request says
`scores`, a line of the same shape before it (`unknown`, `not_decided`) for each program that has passed the gate and
waits for the feedback model. A stream that ends without a verdict or a fault for every program was cut off.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from services.contracts.base import MAX_CANDIDATES, MAX_DEADLINE_S, Boolean, Integer, Name, Number, Wire
from services.contracts.outcomes import Reason, Verdict
from services.contracts.problems import Missing


class EvaluationMethod(str, Enum):
    """`gate`: the one-token classifier alone. `cascade`: the gate, then one greedy trace for what passes.

    `self_consistency`: the gate, then several sampled traces and a quorum (learning-lean-feedback, Section 5).
    """

    GATE = "gate"
    CASCADE = "cascade"
    SELF_CONSISTENCY = "self_consistency"


class Program(Wire):
    """A complete Lean program; it is data to the models, whatever it says."""

    id: Name
    code: str


class EvaluateRequest(Wire):
    """Programs to predict Lean's verdict for."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"programs": [{"id": "c1", "code": "theorem t : 1 + 1 = 2 := rfl"}], "method": "cascade"}]
        }
    )

    programs: Annotated[tuple[Program, ...], Field(min_length=1, max_length=MAX_CANDIDATES)]
    method: EvaluationMethod | None = Field(default=None, description="Default: a setting of the evaluator.")
    priority: Annotated[Integer, Field(ge=-100, le=100)] = 0
    deadline_s: Annotated[Number, Field(gt=0, le=MAX_DEADLINE_S)] | None = None
    trace: Boolean = Field(default=False, description="Also deliver the annotated program.")
    scores: Boolean = Field(
        default=False,
        description="Also send a line when a program has passed the gate: `unknown`, `not_decided`, with its `gate`. "
        "The line with its verdict follows.",
    )


class Prediction(Wire):
    """What the evaluator says about one program: a line of the streamed answer (`application/x-ndjson`)."""

    model_config = ConfigDict(
        extra="ignore",  # gateways and evaluators are upgraded one after the other, likewise below
        json_schema_extra={
            "examples": [
                {
                    "id": "c1",
                    "verdict": "valid",
                    "reason": "ok",
                    "gate": 0.93,
                    "feedback": "valid",
                    "trace": None,
                    "detail": None,
                    "elapsed_s": 1.4,
                }
            ]
        },
    )

    id: str
    verdict: Verdict = Field(description="`unknown` when the evaluator failed, with reason `infrastructure`.")
    reason: Reason
    gate: float | None = Field(default=None, ge=0, le=1)
    feedback: Verdict | None = None
    trace: str | None = None
    detail: str | None = None
    elapsed_s: float | None = Field(default=None, ge=0, description="From receipt to this prediction, seconds.")

    @model_validator(mode="after")
    def _check(self) -> Prediction:
        """A prediction that contradicts itself is none: a fault that says `invalid` would be a zero reward."""
        expected = _VERDICTS.get(self.reason, Verdict.INVALID)
        if self.verdict is not expected:
            raise ValueError(f"the reason {self.reason.value} goes with {expected.value}")
        if self.verdict is Verdict.VALID and self.feedback not in (None, Verdict.VALID):
            raise ValueError("valid, but not to the feedback model")
        return self


# What each reason says; every other one is a rejection.
_VERDICTS = {
    Reason.OK: Verdict.VALID,
    Reason.NOT_DECIDED: Verdict.UNKNOWN,
    Reason.INFRASTRUCTURE: Verdict.UNKNOWN,
    Reason.EVALUATOR_DISTRUSTED: Verdict.UNKNOWN,
    Reason.LEAN_TIMEOUT: Verdict.UNKNOWN,
    Reason.STATEMENT_INVALID: Verdict.UNKNOWN,
}


class Interval(Wire):
    """A rate with its Wilson interval."""

    rate: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)
    n: int = Field(ge=0, description="Denominator of the rate.")


class Confusion(Wire):
    """Counts of evaluator verdict against Lean's."""

    true_positive: int = Field(default=0, ge=0)
    false_positive: int = Field(default=0, ge=0)
    true_negative: int = Field(default=0, ge=0)
    false_negative: int = Field(default=0, ge=0)


class QualityWindow(Wire):
    """One window of one model on one source of problems."""

    window_s: float = Field(gt=0)
    model: str
    problems: str = Field(description="Source of the problems, `all` for every one.")
    audited_only: bool = Field(description="Only the uniformly drawn audit sample; fast checks are no fair sample.")
    confusion: Confusion
    accuracy: Interval | None = None
    false_positive_rate: Interval | None = None
    false_negative_rate: Interval | None = None


class GuardMode(str, Enum):
    OFF = "off"
    WARN = "warn"
    ACT = "act"


class EvaluatorQuality(Wire):
    """How well the evaluator has predicted Lean, where both answered."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "windows": [
                        {
                            "window_s": 3600,
                            "model": "linear-demo",
                            "problems": "all",
                            "audited_only": True,
                            "confusion": {
                                "true_positive": 40,
                                "false_positive": 9,
                                "true_negative": 46,
                                "false_negative": 5,
                            },
                            "accuracy": {"rate": 0.86, "low": 0.78, "high": 0.915, "n": 100},
                            "false_positive_rate": {"rate": 0.164, "low": 0.089, "high": 0.283, "n": 55},
                            "false_negative_rate": {"rate": 0.111, "low": 0.044, "high": 0.253, "n": 45},
                        }
                    ],
                    "guard": "warn",
                    "distrusted": False,
                }
            ]
        }
    )

    windows: tuple[QualityWindow, ...]
    guard: GuardMode
    distrusted: bool = Field(description="The guard holds that unfinished positives are not to be believed.")


class EvaluatorModel(Wire):
    """A model that predicts, and the Lean that it was trained to predict, where it says so."""

    model_config = ConfigDict(extra="ignore")

    name: str
    toolchain: str | None = None
    demonstration: bool = Field(default=False, description="It shows how things work; its predictions mean nothing.")


class EvaluatorReadiness(Wire):
    """`GET /readyz` of the evaluator: whether it can predict now (200) or not (503), and with what."""

    model_config = ConfigDict(extra="ignore")

    status: Literal["ready", "not_ready"]
    missing: tuple[Missing, ...] = ()
    warnings: tuple[str, ...] = Field(default=(), description="What works but deserves a look.")
    gate: EvaluatorModel
    feedback: EvaluatorModel
    pairs: int = Field(ge=0, description="Pairs of a gate and a feedback model that this evaluator owns.")
    ready: int = Field(ge=0, description="Of these, with both engines up.")
    in_flight: int = Field(ge=0, description="Programs that it has and has not answered.")
