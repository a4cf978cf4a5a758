"""One decision: where a turn belongs, judged from a window of the turns beside it. Its size is bounded."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from services.contracts.workflows import Workflow, WorkflowNode
from services.process.certificates.claims import Decision
from services.process.judging.transcript import typed
from services.process.prompts import Data, Malformed, Question, load_prompt, object_in
from services.process.segmentation.cursor import STAY, Cursor, Move
from services.process.trajectories import Step
from services.process.workflow.predicates import in_words

PROMPT = load_prompt("stage_step", 1)
_NAMES = {"STAY": Decision.STAY, "ADVANCE": Decision.ADVANCE, "LOOP_BACK": Decision.LOOP_BACK}
_THOUGHT, _ACTION, _RESULT, _CALLS, _STEPS = 600, 800, 400, 4, 4
_INSTRUCTION, _POSTS = 600, 6
_MOVES = 24


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    decision: str
    target: int | None = None


def question(workflow: Workflow, cursor: Cursor, turns: Sequence[Sequence[Step]], index: int) -> Question:
    """Ask where turn `index` belongs; the cursor stands where the turn before it does."""
    nodes = {node.id: node for node in workflow.nodes}
    moves = cursor.moves()[:_MOVES]
    listed = [
        f"{_name(decision)} to stage {target}: {_stage(nodes[target])}"
        for decision, target in moves
        if target is not None
    ]
    before = _turn(turns[index - 1]) if index else "(none: this is the first turn)"
    after = _turn(turns[index + 1]) if index + 1 < len(turns) else "(none: this is the last turn)"
    return Question(
        prompt=PROMPT,
        parts=(
            Data(f"Present stage, number {cursor.node}:", _stage(nodes[cursor.node])),
            Data("Moves besides STAY:", "\n".join(listed)),
            Data("Previous turn:", before),
            Data("CURRENT turn:", _turn(turns[index])),
            Data("Next turn:", after),
            "Where does the CURRENT turn belong?",
        ),
        schema={
            "type": "object",
            "properties": {
                "decision": {"type": "string", "enum": list(_NAMES)},
                "target": {"type": ["integer", "null"]},
            },
            "required": ["decision", "target"],
            "additionalProperties": False,
        },
        max_tokens=64,
    )


def parse(text: str) -> Move:
    """The move that an answer names, whether or not it is legal. Raises `Malformed`."""
    try:
        answer = _Answer.model_validate(object_in(text))
    except ValidationError:
        raise Malformed("a decision without its form") from None
    decision = _NAMES.get(answer.decision.strip().upper())
    if decision is None:
        raise Malformed("no decision of the three")
    return STAY if decision is Decision.STAY else Move(decision, answer.target)


def legal(cursor: Cursor, move: Move) -> Move | None:
    """The move, with its target filled in where there is only one; None when the workflow does not allow it."""
    if move == STAY:
        return STAY
    fitting = [m for m in cursor.moves() if m.decision is move.decision and move.target in (None, m.target)]
    return fitting[0] if len(fitting) == 1 else None


def _name(decision: Decision) -> str:
    return next(name for name, value in _NAMES.items() if value is decision)


def _stage(node: WorkflowNode) -> str:
    posts = "; ".join(in_words(fact)[:200] for fact in node.postcond_extra[:_POSTS])
    done = f"done when: {posts}" if posts else ""
    return " | ".join(filter(None, (node.name, f"kind: {node.general_stage}", node.instruction[:_INSTRUCTION], done)))


def _turn(turn: Sequence[Step]) -> str:
    """The last steps of a turn in short slices: thought, actions, results."""
    lines = []
    for step in turn[-_STEPS:]:
        if step.thought:
            lines.append(f"thought: {_slice(step.thought, _THOUGHT)}")
        lines += [f"action {call.name[:100]!r}: {_slice(typed(call), _ACTION)}" for call in step.calls[:_CALLS]]
        lines += [f"result: {_slice(seen.text, _RESULT)}" for seen in step.observations[:_CALLS]]
    return "\n".join(lines) or "(empty)"


def _slice(text: str, limit: int) -> str:
    cut = text if len(text) <= limit else f"{text[: limit // 2]} [...] {text[-limit // 2 :]}"
    return cut.encode("utf-8", "replace").decode("utf-8")
