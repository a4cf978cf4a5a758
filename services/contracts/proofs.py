"""`POST /v1/proofs/score` and `POST /v1/proofs/jobs`: a batch of proof attempts and its rewards."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from services.contracts.base import (
    MAX_CANDIDATES,
    MAX_DEADLINE_S,
    MAX_PRIORITY,
    MAX_TIMEOUT_S,
    BatchId,
    Boolean,
    Integer,
    LeanText,
    Name,
    Number,
    Wire,
)
from services.contracts.lean import Message, Position
from services.contracts.outcomes import LeanStatus, Profile, Reason, Source, Verdict


class Mode(str, Enum):
    """Who may decide: Lean and the learned evaluator, Lean alone, or the evaluator alone."""

    HYBRID = "hybrid"
    LEAN = "lean"
    EVALUATOR = "evaluator"


class CutoffPolicy(str, Enum):
    """The event that ends a batch, if the deadline and "everything is decided" do not come first.

    `evaluator_done`: every prediction is in, and Lean has finished what the evaluator failed on (in mode `lean` it
    means `all`). `all`: Lean has finished everything, and the evaluator what Lean left open. `deadline`: only the
    deadline. Whatever the policy, a batch ends when nothing can change any more.
    """

    EVALUATOR_DONE = "evaluator_done"
    DEADLINE = "deadline"
    ALL = "all"


class CutoffReason(str, Enum):
    """What ended a batch. `decided`: precheck and Lean have decided every candidate."""

    EVALUATOR_DONE = "evaluator_done"
    DEADLINE = "deadline"
    ALL = "all"
    DECIDED = "decided"


class Allowance(str, Enum):
    """What the caller tolerates. `evaluator_only`: go on with predictions alone while Lean is down."""

    EVALUATOR_ONLY = "evaluator_only"


class Inclusion(str, Enum):
    """Bulky parts of an answer, left out unless asked for: Lean's messages, the evaluator's annotated trace."""

    MESSAGES = "messages"
    TRACE = "trace"


class Candidate(Wire):
    """One proof attempt: the program itself (`code`) or the text of a model that carries it in a fence (`response`).

    `code` and `response` come from the policy under training. A program that no Lean file can be (too long, a NUL, a
    lone surrogate) is this candidate's own rejection and never an error of the request, up to 1 MiB of UTF-8.
    """

    id: Name = Field(description="Unique in the batch.")
    group: Name | None = Field(default=None, description="The prompt that this rollout belongs to.")
    code: str | None = Field(default=None, description="A complete Lean program.")
    response: str | None = Field(default=None, description="A model's answer; the last fenced Lean block is extracted.")
    statement: LeanText | None = Field(
        default=None,
        description="The theorem that must be proved; may end in nothing, `:=`, `:= by` or `:= by sorry`. Without it "
        "any sound theorem counts.",
    )
    header: LeanText | None = Field(
        default=None,
        description="The preamble in which the statement elaborates and whose imports the code must carry. Default: "
        "the server's.",
    )

    @model_validator(mode="after")
    def _one_program(self) -> Candidate:
        if (self.code is None) == (self.response is None):
            raise ValueError("exactly one of `code` and `response` is needed")
        return self


class Cutoff(Wire):
    """When a batch ends: the earliest of the deadline, the policy's event, and everything being decided."""

    policy: CutoffPolicy | None = Field(default=None, description="Default: a setting of the server.")
    deadline_s: Annotated[Number, Field(gt=0, le=MAX_DEADLINE_S)] | None = Field(
        default=None, description="Seconds after receipt of the request. Default: a setting of the server."
    )


class RewardMap(Wire):
    """The reward of each verdict. `unknown` null means that the trainer gets no number and must leave it out."""

    valid: Number = 1.0
    invalid: Number = 0.0
    unknown: Number | None = None


class ScoreOptions(Wire):
    """Everything in a `ScoreRequest` but its candidates."""

    batch_id: BatchId | None = Field(
        default=None,
        description="The same id and body is the same batch: joined while it runs, answered from memory afterwards. "
        "The same id with another body is 409. Ids belong to the caller's key.",
    )
    mode: Mode | None = Field(
        default=None, description="Default: `hybrid` where an evaluator is configured, else `lean`."
    )
    cutoff: Cutoff = Cutoff()
    lean_timeout_s: Annotated[Number, Field(gt=0, le=MAX_TIMEOUT_S)] | None = Field(
        default=None, description="Wall-clock limit of one Lean check, seconds. Default: a setting of the server."
    )
    priority: Annotated[Integer, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = Field(
        default=0, description="Higher is checked earlier, and refused later."
    )
    profile: Profile | None = Field(default=None, description="The precheck policy. Default: a setting, `strict`.")
    prepend_header: Boolean = Field(
        default=False, description="Add the header to code that has no imports instead of rejecting it."
    )
    allow: tuple[Allowance, ...] = ()
    problems: Name | None = Field(
        default=None,
        description="Where the problems come from, such as a data set: the evaluator's quality is kept apart by it.",
    )
    rewards: RewardMap = RewardMap()
    include: tuple[Inclusion, ...] = ()


class ScoreRequest(ScoreOptions):
    """A batch of proof attempts. Only `candidates` is required."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "candidates": [
                        {
                            "id": "c1",
                            "group": "p17",
                            "code": "theorem t (a b : Nat) : a + b = b + a := by omega",
                            "statement": "theorem t (a b : Nat) : a + b = b + a",
                        },
                        {
                            "id": "c2",
                            "group": "p17",
                            "response": "Use `omega`.\n```lean\ntheorem t (a b : Nat) : a + b = b + a := by sorry\n```",
                            "statement": "theorem t (a b : Nat) : a + b = b + a",
                        },
                    ],
                    "mode": "lean",
                    "cutoff": {"policy": "all", "deadline_s": 90},
                    "lean_timeout_s": 60,
                    "rewards": {"valid": 1.0, "invalid": 0.0, "unknown": None},
                }
            ]
        }
    )

    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1, max_length=MAX_CANDIDATES)]


class LeanReport(Wire):
    """What became of a candidate's Lean check."""

    status: LeanStatus
    elapsed_s: float | None = Field(default=None, description="Time of the check itself, seconds; null if none ended.")
    axioms: tuple[str, ...] = ()
    statement_match: bool | None = None
    messages: tuple[Message, ...] = Field(default=(), description="Lean's messages, with `include: messages`.")


class EvaluatorReport(Wire):
    """What the learned evaluator said about a candidate, whether or not it decided the reward."""

    gate: float | None = Field(default=None, description="The one-token classifier's probability of `valid`.")
    feedback: Verdict | None = Field(default=None, description="The feedback model's verdict; null when gated out.")
    trace: str | None = Field(default=None, description="The annotated program, with `include: trace`.")
    model: str | None = Field(default=None, description="The models that predicted, such as `linear-demo`.")


class CandidateResult(Wire):
    """The verdict and the reward of one candidate, and who decided it why."""

    id: str
    group: str | None = None
    verdict: Verdict
    reward: float | None = Field(description="Null only where the caller's map says so.")
    source: Source
    reason: Reason
    detail: str | None = None
    position: Position | None = Field(
        default=None, description="The place that caused the reason, in the caller's text of the program."
    )
    lean: LeanReport
    evaluator: EvaluatorReport | None = None

    @property
    def fault_of_the_server(self) -> bool:
        """Nobody decided, because a part of the server failed or was not there."""
        missing = self.reason is Reason.INFRASTRUCTURE or self.lean.status is LeanStatus.UNAVAILABLE
        return self.verdict is Verdict.UNKNOWN and missing


class CutoffReport(Wire):
    reason: CutoffReason
    at_s: float = Field(description="Seconds after receipt of the request.")


class ScoreStats(Wire):
    candidates: int
    prechecked: int = Field(description="Decided by the precheck.")
    cached: int = Field(description="Answered by the verdict cache.")
    duplicates: int = Field(description="Joined to an identical candidate of the same batch.")
    predicted: int = Field(default=0, description="Candidates with a prediction of the evaluator by the cutoff.")
    lean_share: float = Field(ge=0, le=1, description="The part of all candidates that Lean decided by the cutoff.")
    elapsed_s: float


class Degradation(str, Enum):
    """A part that was missing while the batch ran, so that its rewards rest on the other."""

    LEAN_UNAVAILABLE = "lean_unavailable"
    EVALUATOR_UNAVAILABLE = "evaluator_unavailable"


class ScoreResponse(Wire):
    """The results of a batch, in the order of its candidates."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "batch_id": "b-0197",
                    "cutoff": {"reason": "decided", "at_s": 0.19},
                    "results": [
                        {
                            "id": "c1",
                            "group": "p17",
                            "verdict": "valid",
                            "reward": 1.0,
                            "source": "lean",
                            "reason": "ok",
                            "detail": None,
                            "position": None,
                            "lean": {
                                "status": "ok",
                                "elapsed_s": 0.03,
                                "axioms": [],
                                "statement_match": True,
                                "messages": [],
                            },
                            "evaluator": None,
                        },
                        {
                            "id": "c2",
                            "group": "p17",
                            "verdict": "invalid",
                            "reward": 0.0,
                            "source": "precheck",
                            "reason": "forbidden_construct",
                            "detail": "`sorry` is not allowed",
                            "position": {"line": 1, "column": 44},
                            "lean": {
                                "status": "skipped",
                                "elapsed_s": None,
                                "axioms": [],
                                "statement_match": None,
                                "messages": [],
                            },
                            "evaluator": None,
                        },
                    ],
                    "stats": {
                        "candidates": 2,
                        "prechecked": 1,
                        "cached": 0,
                        "duplicates": 0,
                        "predicted": 0,
                        "lean_share": 0.5,
                        "elapsed_s": 0.2,
                    },
                    "degraded": [],
                }
            ]
        }
    )

    batch_id: str
    cutoff: CutoffReport
    results: tuple[CandidateResult, ...]
    stats: ScoreStats
    degraded: tuple[Degradation, ...] = ()
