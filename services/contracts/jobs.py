"""`/v1/proofs/jobs`: a batch that outlives its request."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field

from services.contracts.base import Wire
from services.contracts.problems import Problem
from services.contracts.proofs import ScoreResponse


class JobState(str, Enum):
    """`running` until exactly one of the others; `failed` carries a problem and is never the candidates' fault."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class JobProgress(Wire):
    candidates: int
    decided: int = Field(description="Final already: rejected by the precheck, or answered by Lean.")
    lean: int = Field(description="Of these, answered by Lean or from its cache.")
    elapsed_s: float


class Job(Wire):
    """A job: answer of `POST /v1/proofs/jobs` (202), `GET` and `DELETE /v1/proofs/jobs/{id}`, and its last event."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "b-0197",
                    "state": "running",
                    "progress": {"candidates": 1024, "decided": 310, "lean": 300, "elapsed_s": 7.5},
                    "result": None,
                    "problem": None,
                }
            ]
        }
    )

    id: str
    state: JobState
    progress: JobProgress
    result: ScoreResponse | None = Field(default=None, description="With state `done`.")
    problem: Problem | None = Field(default=None, description="With state `failed`.")


class JobEventName(str, Enum):
    """Names of the server-sent events of `GET /v1/proofs/jobs/{id}/events`.

    `progress` carries a `JobProgress`, `end` a `Job` in its final state. An event's id grows with the progress, so that
    a reader that reconnects with `Last-Event-ID` gets only what it has not seen.
    """

    PROGRESS = "progress"
    END = "end"
