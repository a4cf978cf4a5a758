"""What travels between the gateway, the queue, a Lean worker and its engine.

An engine is given a `CheckTask` and reports a `CheckAnswer`: facts only. The worker turns it into a `LeanOutcome` by
`services.proofs.verdict.judge`, and that is what comes back through the queue as the result of a `LeanJob`.
"""

from __future__ import annotations

from enum import Enum

from pydantic import BaseModel, ConfigDict, Field, field_validator

from services.contracts.outcomes import LeanStatus, Profile, Reason, Verdict

CONTRACT = 1
"""Version of what a job means. It goes up with a field that a worker must not overlook, see `LeanJob.needs`."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Travelling(BaseModel):
    """Read by processes of another release during an upgrade: a field that the reader does not know is left out.

    So a field may only be added with a default that means what its absence meant; one that changes the verdict of a
    program needs a new `CONTRACT` besides.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)


class Position(_Travelling):
    """A place in the candidate's text: 1-based line, 0-based column in code points, as Lean counts them."""

    line: int = Field(ge=1)
    column: int = Field(ge=0)


class Severity(str, Enum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Message(_Travelling):
    """One message of Lean about the candidate. `data` is text that the candidate can influence: never judge by it."""

    severity: Severity
    data: str
    pos: Position | None = None
    end_pos: Position | None = None
    kind: str | None = Field(default=None, description="Lean's own message kind, where the engine reports one.")


class EngineIdentity(_Travelling):
    """What a cached verdict depends on besides the task: never reuse a verdict across different identities."""

    engine: str = Field(description="`embedded` or `repl`.")
    toolchain: str = Field(description="Lean version and commit, for example `4.28.0-pre+<commit>`.")
    environment: str = Field(description="Hash of what can be imported (library, patches, project manifest).")


class CheckTask(_Travelling):
    """One candidate, ready for an engine: the precheck has passed."""

    code: str = Field(description="The complete program, its imports included.")
    header: str = Field(default="", description="The preamble in which the statement elaborates, imports included.")
    statement: str | None = Field(default=None, description="Normalised: ends before any `:=`.")
    profile: Profile = Profile.STRICT
    timeout_s: float = Field(default=60.0, gt=0, description="Wall-clock limit of this check, seconds.")
    heartbeats: int = Field(default=800_000, gt=0, description="Lean's maxHeartbeats (thousands of allocations).")
    messages: bool = Field(default=False, description="Keep Lean's messages in the outcome.")
    tactics: bool = Field(default=False, description="Also deliver tactic states with positions.")


class CheckStatus(str, Enum):
    """How the run of a check ended; not a verdict."""

    DONE = "done"
    HEARTBEATS = "heartbeats"  # the budget of heartbeats ran out: deterministic
    TIMEOUT = "timeout"  # the wall-clock watchdog fired
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"  # trap, abort, stack overflow, exit


class AxiomUse(_Frozen):
    """Axioms that the target depends on, classified against the pristine environment."""

    core: tuple[str, ...] = Field(default=(), description="propext, Classical.choice, Quot.sound.")
    library: tuple[str, ...] = Field(default=(), description="Others present in the pristine environment.")
    foreign: tuple[str, ...] = Field(
        default=(), description="sorryAx, Lean.ofReduceBool, Lean.trustCompiler, and every axiom the candidate added."
    )


class TargetFacts(_Frozen):
    """Facts about one declaration, read from the environment (or, on `repl`, from the server's own probes)."""

    name: str
    found: bool
    kind: str | None = Field(default=None, description="theorem, def, axiom, opaque, induct, ctor, rec, quot.")
    axioms: AxiomUse = AxiomUse()
    statement_match: bool | None = Field(
        default=None, description="Equal elaborated types, binder kinds aside; null without a statement."
    )
    binders_match: bool | None = Field(
        default=None, description="Binder kinds (explicit, implicit, instance) equal too."
    )
    printed_match: bool | None = Field(
        default=None, description="Equal pretty-printed signatures, the comparison of the papers (profile `paper`)."
    )
    kernel_accepts: bool | None = Field(
        default=None, description="Its new constants were added again to the pristine environment; null if not tried."
    )
    kernel_detail: str | None = None


class TacticState(_Travelling):
    """A tactic and the goals around it, for reference traces (learning-lean-feedback, Appendix C)."""

    tactic: str
    pos: Position
    end_pos: Position
    goals_before: tuple[str, ...]
    goals_after: tuple[str, ...]


class CheckAnswer(_Frozen):
    """Everything that an engine found out about one candidate."""

    status: CheckStatus
    elapsed_s: float = Field(ge=0)
    detail: str | None = Field(default=None, description="What ended the check, in words, when it is not `done`.")
    header_error: str | None = Field(default=None, description="The header could not be opened: an import is unknown.")
    statement_error: str | None = Field(default=None, description="The expected statement does not elaborate.")
    messages: tuple[Message, ...] = ()
    messages_truncated: bool = False
    has_placeholder: bool = Field(
        default=False, description="Some declaration depends on sorryAx; not looked for when the program has errors."
    )
    target: TargetFacts | None = Field(
        default=None, description="The expected theorem; null without a statement, or when the program has errors."
    )
    theorems: tuple[TargetFacts, ...] = Field(
        default=(),
        description="Without a statement: every theorem that the candidate's text declares; none when it has errors.",
    )
    tactics: tuple[TacticState, ...] = ()


class LeanJob(_Travelling):
    """One unit of work in the queue. Its key is a hash of everything that the verdict depends on.

    A worker that is older than what the job needs cannot read it: no verdict, rather than one by the wrong rules.
    """

    key: str
    task: CheckTask
    needs: int = Field(default=1, ge=1, description="The least `CONTRACT` of a worker that judges it right.")
    label_only: bool = Field(default=False, description="Finished after a cutoff only to label a prediction.")
    trace: str | None = Field(default=None, description="`traceparent` of the batch that asked first.")

    @field_validator("needs")
    @classmethod
    def _known(cls, needs: int) -> int:
        if needs > CONTRACT:
            raise ValueError(f"the job needs version {needs} of the contract, this process knows {CONTRACT}")
        return needs


class LeanOutcome(_Travelling):
    """The result of a `LeanJob`: Lean's verdict, or which of the four faults kept it away."""

    status: LeanStatus
    verdict: Verdict = Verdict.UNKNOWN
    reason: Reason
    detail: str | None = None
    position: Position | None = None
    elapsed_s: float = 0.0
    axioms: tuple[str, ...] = ()
    statement_match: bool | None = None
    messages: tuple[Message, ...] = ()
    tactics: tuple[TacticState, ...] = ()
    worker: str | None = None
    identity: EngineIdentity | None = None


class WorkerInfo(_Travelling):
    """What a Lean worker announces about itself through the queue, again and again while it lives."""

    worker: str
    identity: EngineIdentity
    engines: int = Field(ge=0, description="Engines that this worker owns.")
    ready: int = Field(ge=0, description="Of these, warm: started, with the headers open, busy or not.")
    headers: tuple[str, ...] = Field(default=(), description="Headers that are warm.")
    sandbox: str | None = Field(default=None, description="The tier in force around candidates, null for none needed.")
    started_at: float = Field(default=0.0, ge=0, description="When the worker started, seconds since the epoch.")
    rss_bytes: int = Field(default=0, ge=0, description="Resident memory of the worker and its engines, bytes.")
    restarts: int = Field(default=0, ge=0, description="Engine restarts since the worker started.")
