"""`POST /v1/trajectories/score` and `/penalties`: step rewards of agent rollouts (lean4agenticrl, Section 2)."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from services.contracts.base import MAX_DEADLINE_S, Boolean, Integer, Json, Name, Number, Wire
from services.contracts.proofs import Candidate, CandidateResult
from services.contracts.workflows import NodeId, Workflow, WorkflowReport

MAX_ROLLOUTS = 1_024
MAX_STEPS = 10_000

Visit = Annotated[Integer, Field(ge=0, le=9_999)]
StepIndex = Annotated[Integer, Field(ge=0)]


class TrajectoryFormat(str, Enum):
    """Who wrote the record: our own `steps`, plain `chat` messages with tool calls, or an agent harness.

    `openhands_v0` is read as `openhands`.
    """

    STEPS = "steps"
    CHAT = "chat"
    ATIF = "atif"
    CLAUDE_CODE = "claude_code"
    MINI_SWE_AGENT = "mini_swe_agent"
    OPENHANDS = "openhands"
    OPENHANDS_SDK = "openhands_sdk"
    SWE_AGENT = "swe_agent"

    @classmethod
    def _missing_(cls, value: object) -> TrajectoryFormat | None:
        return cls.OPENHANDS if value == "openhands_v0" else None


class Phase(str, Enum):
    PLAN = "plan"
    EXEC = "exec"


class Segmentation(str, Enum):
    """One segmentation for all judge replicas, or one for each."""

    SHARED = "shared"
    PER_REPLICA = "per_replica"


class Want(str, Enum):
    GAMMA = "gamma"
    SEGMENTS = "segments"
    BETA = "beta"
    REWARDS = "rewards"
    ADVANTAGES = "advantages"


class ToolCall(Wire):
    name: str
    arguments: Json = Field(default=None, description="An object, or JSON text of one.")


class Step(Wire):
    """One turn of an agent in the format `steps`."""

    thought: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    observation: str = ""
    stage: Name | None = None
    phase: Phase = Phase.EXEC


class Segment(Wire):
    """A turn's place in the workflow: its node, and which visit to that node."""

    turn_idx: StepIndex
    node: NodeId
    visit: Visit = 0


class Outcome(int, Enum):
    FAILED = -1
    PASSED = 1


class StageReward(Wire):
    """beta of one visit to a node."""

    node: NodeId
    visit: Visit = 0
    beta: Outcome


class Rollout(Wire):
    """One rollout. `alpha` (its outcome) is given, or comes from the verdict of `proof`."""

    id: Name
    alpha: Outcome | None = None
    proof: Candidate | None = None
    format: TrajectoryFormat | None = Field(default=None, description="Detected when it is not given.")
    plan: str | None = Field(default=None, description="The problem-specific workflow in words.")
    workflow: Workflow | None = None
    trajectory: Json = Field(description="A list of steps or messages, or the harness's whole record.")
    segments: tuple[Segment, ...] | None = Field(
        default=None,
        description="One for every execution step; used as they are. Without `workflow`, node i is the i-th stage of "
        "`general_workflow`. Without both, `stage` labels on the steps do the same.",
    )
    replica_segments: Annotated[tuple[tuple[Segment, ...], ...], Field(max_length=15)] | None = Field(
        default=None,
        description="The segmentation of each judge replica, with `segmentation: per_replica`; `segments` is then the "
        "first one's, and the steps' own.",
    )
    stage_rewards: tuple[StageReward, ...] | None = None

    @model_validator(mode="after")
    def _one_outcome(self) -> Rollout:
        if self.alpha is not None and self.proof is not None:
            raise ValueError("`alpha` and `proof` exclude each other: the verdict of the proof becomes alpha")
        return self


class TrajectoryScoreRequest(Wire):
    """The rollouts of one prompt. Rewards (equations 1 to 3) and advantages (equation 6) need the whole group."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "group": "p17",
                    "task": "Fix the failing test.",
                    "general_workflow": ["explore", "reproduce", "fix", "verify", "submit"],
                    "rollouts": [
                        {
                            "id": "r1",
                            "alpha": 1,
                            "format": "steps",
                            "workflow": {
                                "name": "tiny",
                                "goal": "Fix the failing test.",
                                "nodes": [{"id": 0, "name": "look", "general_stage": "explore"}],
                                "entry": 0,
                                "exits": [0],
                            },
                            "trajectory": [
                                {"thought": "", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}
                            ],
                            "segments": [{"turn_idx": 0, "node": 0, "visit": 0}],
                            "stage_rewards": [{"node": 0, "visit": 0, "beta": 1}],
                        }
                    ],
                    "want": ["gamma", "rewards"],
                }
            ]
        }
    )

    group: Name
    task: str = Field(default="", description="The problem in words, for the judge.")
    general_workflow: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)]
    rollouts: Annotated[tuple[Rollout, ...], Field(min_length=1, max_length=MAX_ROLLOUTS)]
    deadline_s: Annotated[Number, Field(gt=0, le=MAX_DEADLINE_S)] | None = None
    segmentation: Segmentation = Segmentation.SHARED
    certify: Boolean = Field(default=False, description="Also emit a certificate that Lean's kernel has checked.")
    want: Annotated[tuple[Want, ...], Field(min_length=1)] = Field(
        default=tuple(Want),
        description="What is not wanted is null, and not worked out unless something else needs it.",
    )


class StepRow(Wire):
    """The rewards of one step."""

    step: int = Field(ge=0)
    source: tuple[int, ...] = Field(default=(), description="Indices of the messages in the record.")
    phase: Phase
    node: int | None = None
    general_stage: str | None = None
    visit: int | None = None
    alpha: int | None = None
    beta: int | None = Field(default=None, description="Null when the stage is not annotated, and for planning.")
    gamma: int | None = Field(default=None, ge=-1, le=0)
    rules: tuple[Annotated[int, Field(ge=1, le=6)], ...] = ()
    reward: float | None = None
    weight: float | None = Field(default=None, description="Loss weight, equation 6: 1/G, 1/m and 1/n multiplied.")
    advantage: float | None = None


class CertificateStatus(str, Enum):
    """`certified`: the kernel accepted it. `refused`: it did not. `unavailable`: no worker answered in time."""

    CERTIFIED = "certified"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


class Certificate(Wire):
    """A theorem that says what was rewarded and why, and whether Lean's kernel accepted it.

    `certificate_library` of the response followed by `program` is a whole Lean program, for any Lean to check.
    """

    status: CertificateStatus
    program: str | None = None
    theorems: tuple[str, ...] = ()
    detail: str | None = None


class RolloutFlag(str, Enum):
    """What a trainer should know before it uses a rollout's rewards.

    `unannotated`: some stage has no beta where it would count. `unsegmented`: execution steps without a stage.
    `illegal_segments`: the given segments break the workflow, and were used. `corrected_segments`: a segmentation made
    here had illegal answers, which became STAY. `degraded_workflow`: the plan could not be formalised, the general
    workflow stands in. `deadline`: something was cut off.
    """

    UNANNOTATED = "unannotated"
    UNSEGMENTED = "unsegmented"
    UNKNOWN_ALPHA = "unknown_alpha"
    ILLEGAL_SEGMENTS = "illegal_segments"
    CORRECTED_SEGMENTS = "corrected_segments"
    DEGRADED_WORKFLOW = "degraded_workflow"
    DEADLINE = "deadline"


class BetaSource(str, Enum):
    """Who decided the beta of a stage. `code`: every requirement was decidable, or a decidable one failed."""

    GIVEN = "given"
    CODE = "code"
    JUDGE = "judge"


class StageOutcome(Wire):
    """One visit to a node: its beta, who decided it, and where the votes are kept."""

    node: int
    visit: int
    general_stage: str
    steps: int = Field(description="Steps of this visit.")
    beta: int | None = Field(description="Null: nobody judged it in time.")
    source: BetaSource | None = None
    votes: str | None = Field(default=None, description="Id for `GET /v1/votes/{id}`.")


class RolloutResult(Wire):
    id: str
    alpha: int | None
    format: TrajectoryFormat
    steps: tuple[StepRow, ...]
    proof: CandidateResult | None = Field(default=None, description="Where alpha comes from, when a proof was brought.")
    stages: tuple[StageOutcome, ...] = Field(default=(), description="The stage visits, in order of their first step.")
    illegal_steps: tuple[int, ...] = Field(default=(), description="Steps that no decision of the workflow allows.")
    workflow: Workflow | None = Field(default=None, description="The formalised plan, when it was made here.")
    workflow_report: WorkflowReport | None = Field(
        default=None, description="Its static verdicts and where it comes from."
    )
    votes: tuple[str, ...] = Field(default=(), description="Ids for `GET /v1/votes/{id}`.")
    flags: tuple[RolloutFlag, ...] = ()
    certificate: Certificate | None = None


class TrajectoryScoreResponse(Wire):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "group": "p17",
                    "pass_rate": 1.0,
                    "process_band": True,
                    "rollouts": [
                        {
                            "id": "r1",
                            "alpha": 1,
                            "format": "steps",
                            "steps": [
                                {
                                    "step": 0,
                                    "source": [0],
                                    "phase": "exec",
                                    "node": 0,
                                    "general_stage": "explore",
                                    "visit": 0,
                                    "alpha": 1,
                                    "beta": 1,
                                    "gamma": 0,
                                    "rules": [],
                                    "reward": 1.5,
                                    "weight": 0.2,
                                    "advantage": 0.0,
                                }
                            ],
                        }
                    ],
                    "elapsed_s": 0.01,
                }
            ]
        }
    )

    group: str
    pass_rate: float | None = Field(ge=0, le=1, description="Over rollouts with a known alpha; null without any.")
    process_band: bool = Field(description="Pass rate 0 or at least 75%: process rewards apply.")
    rollouts: tuple[RolloutResult, ...]
    certificate_library: str | None = Field(default=None, description="Lean definitions that certificates rest on.")
    elapsed_s: float


class PenaltyTrajectory(Wire):
    """One trajectory of a request that brings several."""

    id: Name
    format: TrajectoryFormat | None = Field(default=None, description="Detected when it is not given.")
    trajectory: Json


class PenaltiesRequest(Wire):
    """One trajectory (`trajectory`), or several with ids (`trajectories`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "format": "steps",
                    "trajectory": [
                        {"tool_calls": [{"name": "bash", "arguments": {"command": "exit 0"}}], "stage": "work"},
                        {"thought": "All done.", "stage": "work"},
                    ],
                },
                {"trajectories": [{"id": "r1", "trajectory": [{"thought": "All done."}]}]},
            ]
        }
    )

    format: TrajectoryFormat | None = Field(default=None, description="Detected when it is not given.")
    trajectory: Json = None
    trajectories: Annotated[tuple[PenaltyTrajectory, ...], Field(min_length=1, max_length=MAX_ROLLOUTS)] | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> PenaltiesRequest:
        if (self.trajectory is None) == (self.trajectories is None):
            raise ValueError("exactly one of `trajectory` and `trajectories` is needed")
        if self.trajectories is not None and self.format is not None:
            raise ValueError("`format` belongs to each of `trajectories`")
        return self


class Evidence(Wire):
    """Why a rule fired: its words, the command or text that it saw, and for repeats the earlier step."""

    rule: Annotated[int, Field(ge=1, le=6)]
    detail: str
    quote: str | None = Field(default=None, description="The normalised command or text, cut when it is long.")
    earlier_step: int | None = Field(default=None, ge=0)


class StepPenalty(Wire):
    """gamma of one step and its reasons."""

    step: int = Field(ge=0)
    stage: str | None = None
    visit: int | None = Field(default=None, ge=0)
    gamma: Annotated[int, Field(ge=-1, le=0)]
    rules: tuple[Annotated[int, Field(ge=1, le=6)], ...] = ()
    evidence: tuple[Evidence, ...] = ()


class Penalties(Wire):
    """The answer for one trajectory: a row for every step."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "steps": [
                        {
                            "step": 0,
                            "stage": "work",
                            "visit": 0,
                            "gamma": -1,
                            "rules": [2],
                            "evidence": [
                                {"rule": 2, "detail": "only no-op commands", "quote": "exit 0", "earlier_step": None}
                            ],
                        },
                        {"step": 1, "stage": "work", "visit": 0, "gamma": 0, "rules": [], "evidence": []},
                    ]
                }
            ]
        }
    )

    steps: tuple[StepPenalty, ...]


class TrajectoryPenalties(Wire):
    """The answer for one of several trajectories."""

    id: str
    steps: tuple[StepPenalty, ...]


class PenaltiesResults(Wire):
    """The answer for several trajectories, in their order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "results": [
                        {
                            "id": "r1",
                            "steps": [
                                {"step": 0, "stage": None, "visit": 0, "gamma": 0, "rules": [], "evidence": []},
                            ],
                        }
                    ]
                }
            ]
        }
    )

    results: tuple[TrajectoryPenalties, ...]
