"""`GET /v1/live`: what a gateway does at this moment, for the page at `/` and for whoever draws it otherwise."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from services.contracts.base import Wire
from services.contracts.outcomes import Source, Verdict
from services.contracts.problems import Missing
from services.contracts.proofs import Mode


class LiveBatch(Wire):
    """A batch that runs. It bears no id: ids belong to the key that sent them."""

    mode: Mode
    candidates: int
    decided: int
    lean: int = Field(description="Of these, decided by Lean.")
    elapsed_s: float
    deadline_s: float


class LiveQueue(Wire):
    depth: int = Field(description="Checks that wait.")
    oldest_age_s: float
    running: int = Field(description="Checks that workers hold.")


class LiveParts(Wire):
    """Parts that the gateway knows of, and how many of them are ready."""

    ready: int
    all: int


class LiveRewards(Wire):
    """Rewards given since the gateway started."""

    source: Source
    verdict: Verdict
    count: int


class LiveLeanShare(Wire):
    """Sums since the gateway started: the mean of a span is a difference of `total` over one of `batches`."""

    total: float = Field(description="Sum of the Lean shares of all batches that ended.")
    batches: int


class LiveProblem(Wire):
    """Requests refused since the gateway started."""

    code: str
    count: int


class LiveTrouble(Wire):
    """A warning or an error of the gateway's log; the log has its fields."""

    at_s: float = Field(description="Seconds since 1970, of the last one where several were alike.")
    level: str
    event: str
    times: int


class LiveView(Wire):
    """One moment of one gateway."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "at_s": 1796025600.0,
                    "missing": [],
                    "warnings": [],
                    "batches": [
                        {
                            "mode": "hybrid",
                            "candidates": 1024,
                            "decided": 310,
                            "lean": 300,
                            "elapsed_s": 7.5,
                            "deadline_s": 90.0,
                        }
                    ],
                    "more_batches": 0,
                    "queue": {"depth": 712, "oldest_age_s": 7.4, "running": 2},
                    "engines": {"ready": 2, "all": 2},
                    "evaluators": {"ready": 1, "all": 1},
                    "rewards": [{"source": "lean", "verdict": "valid", "count": 4032}],
                    "lean_share": {"total": 11.2, "batches": 12},
                    "problems": [{"code": "too_much_in_flight", "count": 3}],
                    "troubles": [{"at_s": 1796025590.0, "level": "warning", "event": "withdraw_failed", "times": 1}],
                }
            ]
        }
    )

    at_s: float = Field(description="Seconds since 1970.")
    missing: tuple[Missing, ...] = Field(description="Why the gateway cannot score now; empty when it can.")
    warnings: tuple[str, ...]
    batches: tuple[LiveBatch, ...] = Field(description="The oldest first, at most 50.")
    more_batches: int = Field(description="Batches beyond those listed.")
    queue: LiveQueue | None = Field(description="Null when the queue cannot be reached.")
    engines: LiveParts
    evaluators: LiveParts
    rewards: tuple[LiveRewards, ...]
    lean_share: LiveLeanShare
    problems: tuple[LiveProblem, ...]
    troubles: tuple[LiveTrouble, ...] = Field(description="The latest first.")
