"""`GET /v1/votes/{id}`: the record of a stage's judgement, to audit a reward (lean4agenticrl, Appendix J)."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field

from services.contracts.base import Wire
from services.contracts.trajectories import Outcome


class Downgrade(str, Enum):
    """Why a vote of +1 was turned into -1 before the majority."""

    FROM_THE_FUTURE = "from_the_future"
    QUOTE_NOT_FOUND = "quote_not_found"
    TOO_SHORT = "too_short"
    FLAGGED_STEP = "flagged_step"
    JUDGE_FAILED = "judge_failed"


class Judgement(str, Enum):
    SUPPORT = "support"
    CONTRADICTION = "contradiction"
    INSUFFICIENT = "insufficient"


class Quote(Wire):
    """Evidence that a judge quoted, and the step whose observation holds it (null: nowhere)."""

    text: str
    found_step: int | None = Field(default=None, ge=0)


class ReplicaVote(Wire):
    replica: int = Field(ge=0)
    judgement: Judgement | None = Field(description="Null when the judge failed.")
    quote: Quote | None = None
    downgrade: Downgrade | None = None
    vote: Outcome = Field(description="After the downgrade.")
    shown: str = Field(description="Exactly what the judge was shown.")
    detail: str | None = None


class RequirementVotes(Wire):
    """The votes on one postcondition of a stage."""

    requirement: str
    replicas: tuple[ReplicaVote, ...]
    outcome: Outcome


class StageVotes(Wire):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "v-81",
                    "group": "p17",
                    "rollout": "r1",
                    "node": 0,
                    "visit": 0,
                    "first_step": 0,
                    "last_step": 3,
                    "beta": 1,
                    "requirements": [
                        {
                            "requirement": "flag_renamed(diff)",
                            "replicas": [
                                {
                                    "replica": 0,
                                    "judgement": "support",
                                    "quote": {"text": "1 file changed, 1 insertion(+)", "found_step": 2},
                                    "downgrade": None,
                                    "vote": 1,
                                    "shown": "step 2: 1 file changed, 1 insertion(+)",
                                }
                            ],
                            "outcome": 1,
                        }
                    ],
                    "judge": "scripted",
                    "prompt_version": "1",
                }
            ]
        }
    )

    id: str
    group: str
    rollout: str
    node: int
    visit: int
    first_step: int
    last_step: int
    beta: Outcome | None = Field(description="Null: unannotated, because no judge answered.")
    requirements: tuple[RequirementVotes, ...]
    judge: str = Field(description="Model and endpoint name of the judge.")
    prompt_version: str
