"""What a stage must have established by its end, and which of it code can decide from the record.

A harness's record holds no values of a plan's variables. Decidable are the predicates that speak of what the record
does hold: `containsSubstring` (the text stands in an observation of the stage that is evidence) and `toolExists` (the
tool was called), and `and` / `or` over them; every other predicate is judged. A stage without postconditions is held to
its instruction: a plan cannot earn beta by asking for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.contracts.workflows import Predicate, WorkflowNode
from services.process.judging.transcript import Transcript, normalised
from services.process.penalties.tools import SHELLS
from services.process.workflow.predicates import builtin, in_words, needle, operands


@dataclass(frozen=True, slots=True)
class Condition:
    """One requirement in words; `decided` by code, or None for the judge."""

    text: str
    decided: bool | None


def objective(node: WorkflowNode) -> str:
    return f"{node.name}\n{node.instruction}".strip()


def conditions_of(node: WorkflowNode, transcript: Transcript, visit: Sequence[int]) -> list[Condition]:
    """The requirements of a stage visit, given its steps in order. At least one."""
    made = [
        Condition(in_words(fact), _decide(fact.predicate, fact.var_name, transcript, visit))
        for fact in node.postcond_extra
    ]
    return made or [Condition("What the stage is for has been done.", None)]


def _decide(predicate: Predicate, name: str, transcript: Transcript, visit: Sequence[int]) -> bool | None:
    parts = operands(predicate)
    if parts:
        found = [_decide(part, name, transcript, visit) for part in parts]
        settled = predicate.kind.lower() == "or"  # the value that one part alone decides
        if settled in found:
            return settled
        return None if None in found else not settled
    if predicate.kind == "toolExists":
        return True if _called(predicate, name, transcript, visit[-1]) else None
    text = needle(predicate) if builtin(predicate) == "containsSubstring" else None
    return None if not text or not text.strip() else _observed(normalised(text), transcript, visit)


def _observed(text: str, transcript: Transcript, visit: Sequence[int]) -> bool:
    return any(
        step not in transcript.flagged and text in transcript.observed(step) and not transcript.is_echo(text, step)
        for step in visit
    )


def _called(predicate: Predicate, name: str, transcript: Transcript, end: int) -> bool:
    """Whether the tool was called by the end of the stage; `shell_run` is any shell."""
    tool = predicate.args.get("name", name)
    wanted = SHELLS if tool == "shell_run" else {str(tool).lower()}
    return any(call.name.lower() in wanted for step in transcript.steps[: end + 1] for call in step.calls)
