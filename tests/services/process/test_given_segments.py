"""Segmentations that are given: used as they are, legal exactly when the Lean definition says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.contracts.trajectories import Segment
from services.contracts.workflows import Workflow
from services.process.certificates.claims import Decision, Row, Transitions
from services.process.penalties import gamma
from services.process.trajectories import read_trajectory
from services.process.workflow import (
    SegmentFault,
    check_workflow,
    segment_labels,
    segment_turns,
    transitions_of,
)
from tests.services.process.turns import record


def plan(**changes: Any) -> Workflow:
    """explore -> fix -> verify, with a loop from verify back to fix, and a branch at the end."""
    value: dict[str, Any] = {
        "name": "plan",
        "goal": "g",
        "nodes": [
            {"id": 0, "name": "look", "general_stage": "explore"},
            {"id": 1, "name": "edit", "general_stage": "fix", "sub_goal_contributions": [{"sub_goal_name": "done"}]},
            {"id": 2, "name": "test", "general_stage": "verify"},
            {"id": 3, "name": "submit", "general_stage": "submit"},
            {"id": 4, "name": "give up", "general_stage": "submit"},
        ],
        "edges": [
            {"edge_type": "seq", "from_node": 0, "to_node": 1},
            {"edge_type": "seq", "from_node": 1, "to_node": 2},
            {"edge_type": "loop_back", "body_end": 2, "header": 1},
            {"edge_type": "branch", "cond_node": 2, "then_node": 3, "else_node": 4},
        ],
        "entry": 0,
        "exits": [3, 4],
        "goal_spec": {
            "original_goal": "g",
            "sub_goals": [{"name": "done", "variable_name": "v", "required_predicate": {"kind": "isInt"}}],
        },
        **changes,
    }
    return Workflow.model_validate(value)


def segments(*places: tuple[int, int]) -> list[Segment]:
    return [Segment(turn_idx=turn, node=node, visit=visit) for turn, (node, visit) in enumerate(places)]


def test_a_walk_along_the_arcs_is_legal_and_its_decisions_are_named() -> None:
    walked = segment_turns(plan(), segments((0, 0), (1, 0), (2, 0), (1, 1), (1, 1), (2, 1), (4, 0)), 7)
    assert walked.legal
    stay, advance, back = Decision.STAY, Decision.ADVANCE, Decision.LOOP_BACK
    assert [row.decision for row in walked.rows] == [stay, advance, advance, back, stay, advance, advance]


@pytest.mark.parametrize(
    ("places", "illegal"),
    [
        ([(0, 0), (2, 0), (2, 0)], (1,)),  # a stage is skipped
        ([(1, 0), (0, 0)], (1,)),  # back without a declared loop
        ([(0, 0), (1, 0), (2, 0), (1, 0)], (3,)),  # a loop that forgets to count its visit
        ([(0, 0), (1, 1)], (1,)),  # the first visit is number 0
        ([(0, 1)], (0,)),  # the cursor starts in visit 0 of the entry
    ],
)
def test_an_undeclared_jump_is_reported_and_used(places: list[tuple[int, int]], illegal: tuple[int, ...]) -> None:
    walked = segment_turns(plan(), segments(*places), len(places))
    assert walked.illegal == illegal
    assert [(row.node, row.visit) for row in walked.rows] == places


@pytest.mark.parametrize(
    ("given_segments", "turns", "index", "words"),
    [
        (segments((0, 0), (9, 0)), 2, 1, "no node 9"),
        (segments((0, 0), (1, 0)), 1, 1, "of a trajectory of 1"),
        (segments((0, 0)) * 2, 1, 1, "twice"),
        (segments((0, 0)), 3, None, "turn 1 has no segment"),
    ],
)
def test_segments_that_cannot_be_used_are_refused(
    given_segments: list[Segment], turns: int, index: int | None, words: str
) -> None:
    with pytest.raises(SegmentFault, match=words) as refused:
        segment_turns(plan(), given_segments, turns)
    assert refused.value.index == index


def test_labels_name_nodes_by_id_name_or_general_stage() -> None:
    walked = segment_labels(plan(), [None, "look", "fix", "fix", "2", "edit", None, "verify"])
    assert [(row.node, row.visit) for row in walked.rows] == [
        (0, 0), (0, 0), (1, 0), (1, 0), (2, 0), (1, 1), (1, 1), (2, 1),
    ]  # fmt: skip
    assert walked.legal


@pytest.mark.parametrize(("label", "words"), [("cook", "names 0 nodes"), ("submit", None)])
def test_a_label_must_name_one_node(label: str, words: str | None) -> None:
    if words is None:  # a node's name wins over a general stage that two nodes share
        assert segment_labels(plan(), [label]).rows[0].node == 3
        return
    with pytest.raises(SegmentFault, match=words):
        segment_labels(plan(), [label])


def test_a_general_stage_of_two_nodes_names_none_of_them() -> None:
    shared = [{**node, "name": f"n{node['id']}"} for node in plan().model_dump()["nodes"]]
    with pytest.raises(SegmentFault, match="names 2 nodes"):
        segment_labels(plan(nodes=shared), ["submit"])


def test_a_sound_workflow_has_no_faults_and_a_broken_one_names_each() -> None:
    assert check_workflow(plan(), ["explore", "fix", "verify", "submit"]) == []
    nodes = [
        {"id": 0, "name": "a", "general_stage": "explore"},
        {"id": 0, "name": "b", "general_stage": "cook", "sub_goal_verifications": [{"sub_goal_name": "other"}]},
    ]
    edges = [{"edge_type": "loop", "header": 0, "body_entry": 7, "exit": 0}]
    faults = check_workflow(plan(nodes=nodes, edges=edges, entry=5, exits=[0, 6]), ["explore"])
    assert [fault.location for fault in faults] == [
        ("nodes", 1, "id"),
        ("nodes", 1, "general_stage"),
        ("edges", 0, "body_entry"),
        ("entry",),
        ("exits", 1),
        ("nodes", 1, "sub_goal_verifications", 0, "sub_goal_name"),
    ]


def lean_legal(where: Transitions, rows: tuple[Row, ...]) -> bool:
    """`Transitions.legal` of lean/LeanReward/Segmentation.lean, word for word."""
    node, visit, entered = where.entry, 0, [where.entry]
    for row in rows:
        if row.decision is Decision.STAY:
            if (row.node, row.visit) != (node, visit):
                return False
            continue
        arcs = where.forward if row.decision is Decision.ADVANCE else where.back
        if (node, row.node) not in arcs or row.visit != entered.count(row.node):
            return False
        node, visit = row.node, row.visit
        entered.append(node)
    return True


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=10))
@settings(max_examples=400, deadline=None)
def test_legality_is_what_lean_says(places: list[tuple[int, int]]) -> None:
    walked = segment_turns(plan(), segments(*places), len(places))
    assert walked.legal == lean_legal(transitions_of(plan()), walked.rows)


@given(st.lists(st.sampled_from(["stay", "on", "back"]), max_size=30))
def test_every_walk_that_follows_the_arcs_is_legal(moves: list[str]) -> None:
    where = transitions_of(plan())
    node, visit, entered = 0, 0, [0]
    places = []
    for move in moves:
        arcs = {"on": where.forward, "back": where.back}.get(move, [])
        target = next((to for start, to in arcs if start == node), None)
        if target is not None:
            node, visit = target, entered.count(target)
            entered.append(node)
        places.append((node, visit))
    assert segment_turns(plan(), segments(*places), len(places)).legal


def test_rule_6_follows_the_visits_of_a_segmentation() -> None:
    steps = read_trajectory(record("ls", "cat a", "ls"))
    same = gamma(steps, places=[("1", 0), ("1", 0), ("1", 0), ("1", 0)])
    apart = gamma(steps, places=[("1", 0), ("2", 0), ("1", 1), ("1", 1)])
    assert [row.rules for row in same] == [(), (), (6,), ()]
    assert [row.rules for row in apart] == [(), (), (), ()]
    assert [(row.stage, row.visit) for row in apart] == [("1", 0), ("2", 0), ("1", 1), ("1", 1)]
