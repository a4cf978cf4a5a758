"""Workflow contracts for tests: short to write, and random."""

from __future__ import annotations

import random
from typing import Any

from services.contracts.workflows import Workflow


def fact(name: str, kind: str = "nonEmptyString", **args: Any) -> dict[str, Any]:
    custom = {} if kind[0].islower() else {"custom_name": kind}
    return {"var_name": name, "predicate": {"kind": "custom" if custom else kind, **custom, "args": args}}


def contract(nodes: list[dict[str, Any]], edges: list[tuple[Any, ...]], exits: list[int], **more: Any) -> Workflow:
    kinds = {
        "seq": ("from_node", "to_node"),
        "branch": ("cond_node", "then_node", "else_node"),
        "loop": ("header", "body_entry", "exit"),
        "loop_back": ("body_end", "header"),
    }
    return Workflow.model_validate(
        {
            "name": "w",
            "goal": "g",
            "nodes": [{"id": i, "name": f"n{i}", "general_stage": "s", **node} for i, node in enumerate(nodes)],
            "edges": [{"edge_type": kind, **dict(zip(kinds[kind], ends, strict=True))} for kind, *ends in edges],
            "entry": 0,
            "exits": exits,
            **more,
        }
    )


def random_contract(rng: random.Random) -> Workflow:
    """A small graph, mostly forward, with few names so that facts meet."""
    count = rng.randint(1, 6)
    edges: list[tuple[Any, ...]] = [("seq", i, i + 1) for i in range(count - 1) if rng.random() < 0.9]
    for _ in range(rng.randint(0, 3)):
        a, b, c = (rng.randrange(count) for _ in range(3))
        kind = rng.choice(["seq", "branch", "loop", "loop_back"])
        if kind in ("branch", "loop"):
            edges.append((kind, min(a, b), max(a, b), max(a, c)) if rng.random() < 0.9 else (kind, a, b, c))
        else:
            ends = (min(a, b), max(a, b)) if kind == "seq" and rng.random() < 0.9 else (max(a, b), min(a, b))
            edges.append((kind, *ends))

    def some(make: Any, most: int) -> list[Any]:
        return [make() for _ in range(rng.randint(0, most))]

    def atom() -> dict[str, Any]:
        kind = rng.choice(["nameExists", "nonEmptyString", "isInt", "containsSubstring", "custom"])
        if kind == "custom":
            return {"kind": kind, "custom_name": rng.choice(["p", "q"])}
        return {"kind": kind, "args": {"substring": rng.choice(["", "a", "b"])} if kind == "containsSubstring" else {}}

    def predicate() -> dict[str, Any]:
        if rng.random() < 0.7:
            return atom()
        return {"kind": rng.choice(["and", "or"]), "args": {"left": atom(), "right": atom()}}

    def about() -> dict[str, Any]:
        return {"var_name": rng.choice("xy"), "predicate": predicate()}

    def share() -> dict[str, Any]:
        return {"sub_goal_name": rng.choice(["g0", "g1"])}

    nodes = [
        {
            "reads": some(lambda: rng.choice("xy"), 2),
            "writes": some(lambda: rng.choice("xy"), 1),
            "precond_extra": some(about, 1),
            "postcond_extra": some(about, 2),
            "info_requires": some(lambda: rng.choice(["i", "j"]), 1),
            "produces_variable_info": {rng.choice("xy"): [rng.choice(["i", "j"])]} if rng.random() < 0.3 else {},
            "produces_context_info": some(lambda: rng.choice(["i", "j"]), 1),
            "sub_goal_contributions": some(share, 1),
            "sub_goal_verifications": some(share, 1),
        }
        for _ in range(count)
    ]
    graph = ["pathCoverage", "verificationCoverage", "unifiedLoopBack"]
    goals = [
        {
            "name": f"g{i}",
            "variable_name": rng.choice("xy"),
            "required_predicate": predicate(),
            "required_graph_predicates": [{"kind": kind} for kind in graph if rng.random() < 0.3],
        }
        for i in range(2)
    ]
    return contract(
        nodes,
        edges,
        sorted({count - 1, *some(lambda: rng.randrange(count), 1)}),
        param_postcond=some(about, 2),
        goal_spec={"original_goal": "g", "sub_goals": goals},
    )
