"""The variable chain: whether the facts available on entry to each node entail its preconditions (Hoare; as
`lean/LeanReward/VariableChain.lean`).

Facts are computed along a topological order, at a merge only what every way gives, and narrowed until no arc brings in
less, loop-backs included. A write to a variable ends the older facts about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.contracts.workflows import (
    ChainVerdict,
    MissingFact,
    VariableChain,
    VariablePredicate,
    Workflow,
    WorkflowNode,
)
from services.process.workflow.graph import arcs_of, topological
from services.process.workflow.predicates import entails
from services.process.workflow.transitions import Arc

Facts = list[VariablePredicate]


class Chain(NamedTuple):
    """The verdict, and for each exit the facts after it; empty unless the verdict is `holds`."""

    verdict: VariableChain
    exit_facts: dict[int, Facts]


def chain_of(workflow: Workflow) -> Chain:
    """The verdict on a workflow whose parts fit together (`check_workflow`)."""
    forward, back = arcs_of(workflow)
    order = topological([node.id for node in workflow.nodes], forward)
    if order is None:
        return Chain(VariableChain(verdict=ChainVerdict.NOT_ORDERED), {})
    nodes = {node.id: node for node in workflow.nodes}
    table = _narrow(nodes, _spread(workflow, nodes, order, forward), [*forward, *back])
    for node in order:
        for fact in nodes[node].precond_extra:
            if not entails(table[node], fact):
                missing = MissingFact(node=node, fact=fact, available=tuple(table[node]))
                return Chain(VariableChain(verdict=ChainVerdict.MISSING, missing=missing), {})
    exits = {node: _after(nodes[node], table[node]) for node in workflow.exits}
    return Chain(VariableChain(verdict=ChainVerdict.HOLDS), exits)


def _after(node: WorkflowNode, before: Facts) -> Facts:
    """What holds after a node: its postconditions, and older facts about variables that it does not write."""
    return [*node.postcond_extra, *(fact for fact in before if fact.var_name not in node.writes)]


def _merge(nodes: dict[int, WorkflowNode], table: dict[int, Facts], sources: Sequence[int], candidates: Facts) -> Facts:
    """The candidates that every source gives."""
    given = [_after(nodes[source], table[source]) for source in sources]
    return [fact for fact in candidates if all(entails(facts, fact) for facts in given)]


def _spread(
    workflow: Workflow, nodes: dict[int, WorkflowNode], order: Sequence[int], forward: Sequence[Arc]
) -> dict[int, Facts]:
    table: dict[int, Facts] = {}
    for node in order:
        sources = [source for source, target in forward if target == node]
        if node == workflow.entry:
            table[node] = list(workflow.param_postcond)
        elif not sources:
            table[node] = []
        else:
            first, *others = sources
            table[node] = _merge(nodes, table, others, _after(nodes[first], table[first]))
    return table


def _narrow(nodes: dict[int, WorkflowNode], table: dict[int, Facts], arcs: Sequence[Arc]) -> dict[int, Facts]:
    """Drop what some arc does not give, until nothing changes; every round drops a fact, so that it ends."""
    while True:
        narrowed = {
            node: _merge(nodes, table, [source for source, target in arcs if target == node], facts)
            for node, facts in table.items()
        }
        if narrowed == table:
            return table
        table = narrowed
