"""From a plan in words to a workflow contract (lean4agenticrl, Section 2.3.1, Figure 3): the question, the repair of
malformed output, and the fallback.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from services.contracts.workflows import SeqEdge, Workflow
from services.process.prompts import Data, Malformed, Question, load_prompt, object_in
from services.process.workflow.check import check_workflow
from services.process.workflow.placement import general_graph

PROMPT = load_prompt("formalisation", 1)
_PLAN, _TASK, _OUTPUT = 30_000, 8_000, 40_000
_FAULTS = 20
_MAX_TOKENS = 8_192


class Unfit(Malformed):
    """An output that is no contract. `output` is what to repair, `faults` what is wrong, with JSON pointers."""

    def __init__(self, output: str, faults: Sequence[str]) -> None:
        super().__init__(f"{len(faults)} faults in the contract")
        self.output = output
        self.faults = tuple(faults[:_FAULTS])


def question(plan: str, task: str, general_workflow: Sequence[str], broken: Unfit | None = None) -> Question:
    """Ask for the contract of a plan, or for the repair of an output that was none."""
    parts: list[str | Data] = [
        Data("Task:", task[:_TASK] or "(not given)"),
        Data("Stages of the general workflow:", "\n".join(general_workflow)),
        Data("Plan:", plan[:_PLAN]),
    ]
    if broken is not None:
        parts += [
            Data("Your earlier output:", broken.output[:_OUTPUT]),
            Data("It is malformed:", "\n".join(broken.faults)),
            "Correct these faults and nothing else.",
        ]
    parts.append("Write the contract.")
    return Question(PROMPT, tuple(parts), Workflow.model_json_schema(), _MAX_TOKENS)


def parse(text: str, general_workflow: Sequence[str]) -> Workflow:
    """Raises `Unfit`. Whether the contract is consistent is not asked: a negative verdict is a valid answer."""
    try:
        workflow = Workflow.model_validate(object_in(text))
    except ValidationError as error:
        faults = [f"/{'/'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        raise Unfit(text, faults) from None
    except Malformed as error:
        raise Unfit(text, [f"/: {error}"]) from None
    found = check_workflow(workflow, general_workflow)
    if found:
        raise Unfit(text, [f"/{'/'.join(map(str, fault.location))}: {fault.detail}" for fault in found])
    return workflow


def skeleton(general_workflow: Sequence[str]) -> Workflow:
    """The general workflow as a chain of its stages: what stands in where there is no contract."""
    graph = general_graph(general_workflow)
    edges = tuple(SeqEdge(edge_type="seq", from_node=i, to_node=i + 1) for i in range(len(graph.nodes) - 1))
    return graph.model_copy(update={"name": "skeleton", "edges": edges})
