"""Whether the parts of a workflow fit together: what its JSON schema cannot say."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from services.contracts.workflows import Workflow


@dataclass(frozen=True, slots=True)
class WorkflowFault:
    """One thing that does not fit; ``location`` are the parts of its JSON pointer in the workflow."""

    location: tuple[str | int, ...]
    detail: str


def check_workflow(workflow: Workflow, general_workflow: Collection[str] | None = None) -> list[WorkflowFault]:
    """Every fault: ids that occur twice, references to nodes and sub-goals that are not there, stages that are not
    among ``general_workflow``. An empty list means that the graph can be walked; it says nothing of the static
    verdicts.
    """
    ids = {node.id for node in workflow.nodes}
    return [
        *_nodes(workflow, general_workflow),
        *_edges(workflow, ids),
        *_ends(workflow, ids),
        *_goals(workflow),
    ]


def _nodes(workflow: Workflow, general_workflow: Collection[str] | None) -> Iterator[WorkflowFault]:
    seen: dict[int, int] = {}
    for index, node in enumerate(workflow.nodes):
        first = seen.setdefault(node.id, index)
        if first != index:
            yield WorkflowFault(("nodes", index, "id"), f"the id of /nodes/{first} again")
        if general_workflow is not None and node.general_stage not in general_workflow:
            yield WorkflowFault(("nodes", index, "general_stage"), "no stage of the general workflow")


def _edges(workflow: Workflow, ids: set[int]) -> Iterator[WorkflowFault]:
    for index, edge in enumerate(workflow.edges):
        for name, value in edge:
            if name != "edge_type" and value not in ids:
                yield WorkflowFault(("edges", index, name), f"there is no node {value}")


def _ends(workflow: Workflow, ids: set[int]) -> Iterator[WorkflowFault]:
    if workflow.entry not in ids:
        yield WorkflowFault(("entry",), f"there is no node {workflow.entry}")
    for index, node in enumerate(workflow.exits):
        if node not in ids:
            yield WorkflowFault(("exits", index), f"there is no node {node}")


def _goals(workflow: Workflow) -> Iterator[WorkflowFault]:
    goals = workflow.goal_spec.sub_goals if workflow.goal_spec is not None else ()
    names = {goal.name for goal in goals}
    if len(names) < len(goals):
        yield WorkflowFault(("goal_spec", "sub_goals"), "two sub-goals have one name")
    for index, node in enumerate(workflow.nodes):
        for field in ("sub_goal_contributions", "sub_goal_verifications"):
            for place, share in enumerate(getattr(node, field)):
                if share.sub_goal_name not in names:
                    yield WorkflowFault(
                        ("nodes", index, field, place, "sub_goal_name"), f"there is no sub-goal {share.sub_goal_name!r}"
                    )
