"""The judge's question and its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.contracts.votes import Judgement
from services.process.judging.view import Chunk
from services.process.prompts import Data, Malformed, Question, load_prompt, object_in

PROMPT = load_prompt("stage_judgement", 1)
_QUOTE, _EXPLANATION = 2_000, 1_000
_TASK = 8_000


class RequirementAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    requirement: int
    judgement: Judgement
    quote: Annotated[str, Field(max_length=_QUOTE)] = ""
    explanation: str = ""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    judgements: tuple[RequirementAnswer, ...]


def question(task: str, stage: str, objective: str, requirements: Sequence[str], chunk: Chunk, parts: str) -> Question:
    """Ask about all requirements of a stage over one chunk of its view. `parts` says which chunk of how many it is."""
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(requirements))
    return Question(
        prompt=PROMPT,
        parts=(
            Data("Task of the agent:", task[:_TASK] or "(not given)"),
            Data(f"Stage to judge, and what it is for (kind of stage: {json.dumps(stage)}):", objective),
            Data(f"Requirements 0 to {len(requirements) - 1}:", numbered),
            Data(f"Record, {parts}:", chunk.text),
            f"Judge the requirements 0 to {len(requirements) - 1} by this record.",
        ),
        schema=_schema(len(requirements)),
        max_tokens=400 + 500 * len(requirements),
    )


def parse(text: str, requirements: int) -> tuple[RequirementAnswer, ...]:
    """The answer for each requirement, in order. Raises `Malformed`."""
    try:
        answer = _Answer.model_validate(object_in(text))
    except ValidationError as error:
        raise Malformed(f"{error.error_count()} faults in the judge's answer") from None
    by_number = {item.requirement: item for item in answer.judgements}
    if sorted(by_number) != list(range(requirements)) or len(answer.judgements) != requirements:
        raise Malformed(f"{len(answer.judgements)} judgements for {requirements} requirements")
    return tuple(
        by_number[number].model_copy(update={"explanation": by_number[number].explanation[:_EXPLANATION]})
        for number in range(requirements)
    )


def _schema(requirements: int) -> dict[str, Any]:
    judgement = {
        "type": "object",
        "properties": {
            "requirement": {"type": "integer", "minimum": 0, "maximum": requirements - 1},
            "judgement": {"type": "string", "enum": [kind.value for kind in Judgement]},
            "quote": {"type": "string", "maxLength": _QUOTE},
            "explanation": {"type": "string", "maxLength": _EXPLANATION},
        },
        "required": ["requirement", "judgement", "quote", "explanation"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "judgements": {"type": "array", "items": judgement, "minItems": requirements, "maxItems": requirements}
        },
        "required": ["judgements"],
        "additionalProperties": False,
    }
