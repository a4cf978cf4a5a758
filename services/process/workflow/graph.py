"""Questions about directed graphs as lists of arcs (as `lean/LeanReward/Graph.lean`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from services.contracts.workflows import Workflow
from services.process.workflow.transitions import Arc, transitions_of


def arcs_of(workflow: Workflow) -> tuple[list[Arc], list[Arc]]:
    """The forward arcs and the loop-backs."""
    transitions = transitions_of(workflow)
    return list(transitions.forward), list(transitions.back)


def reachable(arcs: Iterable[Arc], sources: Collection[int]) -> set[int]:
    """Every node that a walk from one of the sources reaches, the sources included."""
    after: dict[int, list[int]] = {}
    for source, target in arcs:
        after.setdefault(source, []).append(target)
    seen, waiting = set(sources), list(sources)
    while waiting:
        for target in after.get(waiting.pop(), ()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def every_walk_meets(arcs: Sequence[Arc], sources: Collection[int], target: int, stop: Callable[[int], bool]) -> bool:
    """Whether every walk from the sources to `target` leaves a node with `stop` before it gets there."""
    return target not in reachable([arc for arc in arcs if not stop(arc[0])], sources)


def topological(nodes: Sequence[int], arcs: Sequence[Arc]) -> list[int] | None:
    """The nodes in an order along all arcs, the given order where that leaves a choice; None when there is a cycle."""
    pending = dict.fromkeys(nodes, 0)
    for _, target in arcs:
        pending[target] += 1
    order: list[int] = []
    while len(order) < len(nodes):
        ready = [node for node in nodes if pending.get(node) == 0]
        if not ready:
            return None
        for node in ready:
            order.append(node)
            del pending[node]
        placed = set(ready)
        for source, target in arcs:
            if source in placed:
                pending[target] -= 1
    return order
