"""The arcs of a workflow: those that go on, and the declared loop-backs (as ``lean/LeanReward/Workflow.lean`` has
them)."""

from __future__ import annotations

from services.contracts.workflows import BranchEdge, Edge, LoopBackEdge, LoopEdge, SeqEdge, Workflow
from services.process.certificates.claims import Transitions

Arc = tuple[int, int]


def forward_arcs(edge: Edge) -> list[Arc]:
    if isinstance(edge, SeqEdge):
        return [(edge.from_node, edge.to_node)]
    if isinstance(edge, BranchEdge):
        return [(edge.cond_node, edge.then_node), (edge.cond_node, edge.else_node)]
    if isinstance(edge, LoopEdge):
        return [(edge.header, edge.body_entry), (edge.header, edge.exit)]
    return []


def back_arcs(edge: Edge) -> list[Arc]:
    return [(edge.body_end, edge.header)] if isinstance(edge, LoopBackEdge) else []


def transitions_of(workflow: Workflow) -> Transitions:
    """Where a segmentation may go: from the entry along forward arcs, and back along declared loop-backs."""
    return Transitions(
        entry=workflow.entry,
        forward=[arc for edge in workflow.edges for arc in forward_arcs(edge)],
        back=[arc for edge in workflow.edges for arc in back_arcs(edge)],
    )
