"""`GET /v1/votes/{id}`: the record of a stage's judgement, to audit a reward (lean4agenticrl, Appendix J)."""

from __future__ import annotations

from enum import Enum

from pydantic import ConfigDict, Field

from services.contracts.base import Wire
from services.contracts.trajectories import Outcome


class Downgrade(str, Enum):
    """Why a claim of +1 became -1 before the majority.

    `from_the_future`: the quote stands only after the stage's end. `quote_not_found`: nowhere in what was shown.
    `too_short`: under 12 normalised characters. `flagged_step`: the output of a step that penalty rules 2 to 4 flag.
    `echo`: the agent typed these words itself.
    """

    FROM_THE_FUTURE = "from_the_future"
    QUOTE_NOT_FOUND = "quote_not_found"
    TOO_SHORT = "too_short"
    FLAGGED_STEP = "flagged_step"
    ECHO = "echo"


class Judgement(str, Enum):
    SUPPORT = "support"
    CONTRADICTION = "contradiction"
    INSUFFICIENT = "insufficient"


class Quote(Wire):
    """Evidence that a judge quoted, and the step whose observation holds it (null: nowhere that counts)."""

    text: str
    found_step: int | None = Field(default=None, ge=0)


class RequirementVote(Wire):
    """What one replica made of one requirement, over all chunks of its view."""

    requirement: int = Field(ge=0, description="Index into `requirements`.")
    judgement: Judgement
    quote: Quote | None = None
    explanation: str = ""
    downgrade: Downgrade | None = None
    vote: Outcome = Field(description="After the downgrade.")


class ReplicaVote(Wire):
    """One replica's judgement of a stage: +1 when it finds every requirement established."""

    replica: int = Field(ge=0)
    first_step: int | None = Field(description="Of the stage in this replica's segmentation; null: it never entered.")
    last_step: int | None
    answered: bool = Field(description="False: the judge failed, or there was nothing to judge.")
    requirements: tuple[RequirementVote, ...] = ()
    vote: Outcome
    shown: tuple[str, ...] = Field(default=(), description="Exactly what the judge was shown, one text a chunk.")
    detail: str | None = None


class Requirement(Wire):
    """A postcondition of a stage, in words, and what code decided of it (null: it was left to the judge)."""

    text: str
    decided: bool | None = None


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
                    "requirements": [{"text": "flag_renamed(diff)", "decided": None}],
                    "replicas": [
                        {
                            "replica": 0,
                            "first_step": 0,
                            "last_step": 3,
                            "answered": True,
                            "requirements": [
                                {
                                    "requirement": 0,
                                    "judgement": "support",
                                    "quote": {"text": "1 file changed, 1 insertion(+)", "found_step": 2},
                                    "explanation": "git counts the change.",
                                    "downgrade": None,
                                    "vote": 1,
                                }
                            ],
                            "vote": 1,
                            "shown": ["Step 2 (of the stage), observation:\n1 file changed, 1 insertion(+)"],
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
    requirements: tuple[Requirement, ...]
    replicas: tuple[ReplicaVote, ...] = Field(description="None where code decided the stage.")
    judge: str = Field(description="The judge's model.")
    prompt_version: str
