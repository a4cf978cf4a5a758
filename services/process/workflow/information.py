"""Information closure: whether every atom that a node requires is visible to it on every way there, through a variable
that it reads or through the context (as `lean/LeanReward/Information.lean`).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.contracts.workflows import NodeInformation, Workflow, WorkflowNode
from services.process.workflow.graph import arcs_of, every_walk_meets
from services.process.workflow.transitions import Arc


def information_of(workflow: Workflow) -> tuple[NodeInformation, ...]:
    """One row for each node that requires an atom."""
    forward, back = arcs_of(workflow)
    arcs = [*forward, *back]
    return tuple(_closure(workflow, node, arcs) for node in workflow.nodes if node.info_requires)


def _closure(workflow: Workflow, node: WorkflowNode, arcs: Sequence[Arc]) -> NodeInformation:
    variable = tuple(atom for atom in node.info_requires if _via_variable(workflow, node, atom, arcs))
    context = tuple(atom for atom in node.info_requires if _via_context(workflow, node, atom, arcs))
    return NodeInformation(
        node=node.id,
        required=node.info_requires,
        via_variable=variable,
        via_context=context,
        missing=tuple(atom for atom in node.info_requires if atom not in variable and atom not in context),
    )


def _via_variable(workflow: Workflow, node: WorkflowNode, atom: str, arcs: Sequence[Arc]) -> bool:
    """From wherever a variable that the node reads may lack the atom (the entry, and after each write without it),
    every way to the node passes a node that puts it in.
    """
    for name in node.reads:
        carriers = {n.id for n in workflow.nodes if atom in n.produces_variable_info.get(name, ())}
        erasers = {n.id for n in workflow.nodes if name in n.writes and n.id not in carriers}
        lacking = [workflow.entry, *(target for source, target in arcs if source in erasers)]
        if carriers and every_walk_meets(arcs, lacking, node.id, carriers.__contains__):
            return True
    return False


def _via_context(workflow: Workflow, node: WorkflowNode, atom: str, arcs: Sequence[Arc]) -> bool:
    """Every way from the entry passes a node that leaves the atom in the context."""
    sources = {n.id for n in workflow.nodes if atom in n.produces_context_info}
    return bool(sources) and every_walk_meets(arcs, [workflow.entry], node.id, sources.__contains__)
