"""The three static verdicts on a plan's contract, by hand; `tests/lean` compares them with the Lean library."""

from __future__ import annotations

from typing import Any

import pytest

from services.contracts.workflows import ChainVerdict, Cover
from services.process.workflow.verdicts import static_verdicts
from tests.services.process.contracts import contract, fact


def chain(*arguments: Any, **more: Any) -> tuple[ChainVerdict, int | None]:
    verdict = static_verdicts(contract(*arguments, **more)).variable_chain
    return verdict.verdict, None if verdict.missing is None else verdict.missing.node


PAIR = [("seq", 0, 1)]


def test_a_precondition_that_an_earlier_stage_establishes_holds() -> None:
    assert chain([{"postcond_extra": [fact("x")]}, {"precond_extra": [fact("x")]}], PAIR, [1])[0] is ChainVerdict.HOLDS


def test_a_stronger_fact_entails_a_weaker_one_and_not_the_reverse() -> None:
    strong, weak = fact("x", "containsSubstring", substring="ok"), fact("x", "nameExists")
    assert chain([{"postcond_extra": [strong]}, {"precond_extra": [weak]}], PAIR, [1])[0] is ChainVerdict.HOLDS
    assert chain([{"postcond_extra": [weak]}, {"precond_extra": [strong]}], PAIR, [1]) == (ChainVerdict.MISSING, 1)


def test_the_first_failure_names_what_is_missing_and_what_is_there() -> None:
    made = contract([{"postcond_extra": [fact("x", "isInt")]}, {"precond_extra": [fact("x")]}], PAIR, [1])
    missing = static_verdicts(made).variable_chain.missing
    assert missing is not None
    assert missing.fact.predicate.kind == "nonEmptyString"
    assert [known.predicate.kind for known in missing.available] == ["isInt"]


def test_a_write_ends_older_facts_about_the_variable() -> None:
    nodes = [{"postcond_extra": [fact("x")]}, {"writes": ["x"]}, {"precond_extra": [fact("x")]}]
    assert chain(nodes, [("seq", 0, 1), ("seq", 1, 2)], [2]) == (ChainVerdict.MISSING, 2)


def test_a_merge_keeps_only_what_every_branch_gives() -> None:
    edges = [("branch", 0, 1, 2), ("seq", 1, 3), ("seq", 2, 3)]
    both = [{}, {"postcond_extra": [fact("x")]}, {"postcond_extra": [fact("x")]}, {"precond_extra": [fact("x")]}]
    assert chain(both, edges, [3])[0] is ChainVerdict.HOLDS
    one = [{}, {"postcond_extra": [fact("x")]}, {}, {"precond_extra": [fact("x")]}]
    assert chain(one, edges, [3]) == (ChainVerdict.MISSING, 3)


def test_a_loop_that_destroys_what_its_header_needs_is_found() -> None:
    nodes = [{"postcond_extra": [fact("x")]}, {"precond_extra": [fact("x")]}, {"writes": ["x"]}, {}]
    edges = [("seq", 0, 1), ("loop", 1, 2, 3), ("loop_back", 2, 1)]
    assert chain(nodes, edges, [3]) == (ChainVerdict.MISSING, 1)
    assert chain([*nodes[:2], {}, {}], edges, [3])[0] is ChainVerdict.HOLDS


def test_a_cycle_of_forward_arcs_has_no_order() -> None:
    assert chain([{}, {}], [("seq", 0, 1), ("seq", 1, 0)], [1])[0] is ChainVerdict.NOT_ORDERED


def test_connectives_are_looked_into() -> None:
    parts = [{"kind": "isInt"}, {"kind": "custom", "custom_name": "even"}]
    either = {"var_name": "x", "predicate": {"kind": "or", "args": {"left": parts[0], "right": parts[1]}}}
    both = {"var_name": "x", "predicate": {"kind": "and", "args": {"predicates": parts}}}
    name = fact("x", "nameExists")
    assert chain([{"postcond_extra": [both]}, {"precond_extra": [either, name]}], PAIR, [1])[0] is ChainVerdict.HOLDS
    assert chain([{"postcond_extra": [either]}, {"precond_extra": [either]}], PAIR, [1])[0] is ChainVerdict.HOLDS
    assert chain([{"postcond_extra": [either]}, {"precond_extra": [both]}], PAIR, [1]) == (ChainVerdict.MISSING, 1)


def test_information_is_visible_through_variables_and_unbroken_context() -> None:
    nodes = [
        {"writes": ["x"], "produces_variable_info": {"x": ["where"]}, "produces_context_info": ["why"]},
        {"reads": ["x"], "info_requires": ["where", "why", "when"]},
    ]
    (row,) = static_verdicts(contract(nodes, PAIR, [1])).information
    assert (row.via_variable, row.via_context, row.missing) == (("where",), ("why",), ("when",))


def test_information_on_one_branch_alone_is_missing() -> None:
    nodes: list[dict[str, Any]] = [{}, {"produces_context_info": ["why"]}, {}, {"info_requires": ["why"]}]
    edges = [("branch", 0, 1, 2), ("seq", 1, 3), ("seq", 2, 3)]
    (row,) = static_verdicts(contract(nodes, edges, [3])).information
    assert row.missing == ("why",)


@pytest.mark.parametrize(
    ("contributors", "posts", "verifiers", "graph", "cover"),
    [
        ([], [], [], [], Cover.UNCOVERED),
        ([1], [3], [], [], Cover.WEAK),
        ([0], [], [], ["pathCoverage"], Cover.PARTIAL),
        ([0], [3], [], ["pathCoverage"], Cover.FULL),
        ([0], [3], [1], ["verificationCoverage"], Cover.PARTIAL),
        ([0], [3], [3], ["verificationCoverage"], Cover.FULL),
        ([0], [3], [3], ["unifiedLoopBack"], Cover.FULL),
        ([0], [3], [3], ["nobody knows this"], Cover.PARTIAL),
    ],
)
def test_coverage_of_a_sub_goal(
    contributors: list[int], posts: list[int], verifiers: list[int], graph: list[str], cover: Cover
) -> None:
    nodes: list[dict[str, Any]] = [
        {
            "sub_goal_contributions": [{"sub_goal_name": "done"}] * (i in contributors),
            "sub_goal_verifications": [{"sub_goal_name": "done"}] * (i in verifiers),
            "postcond_extra": [fact("d", "Done")] * (i in posts),
        }
        for i in range(4)
    ]
    goal = {
        "name": "done",
        "variable_name": "d",
        "required_predicate": {"kind": "custom", "custom_name": "Done"},
        "required_graph_predicates": [{"kind": kind} for kind in graph],
    }
    edges = [("branch", 0, 1, 2), ("seq", 1, 3), ("seq", 2, 3), ("loop_back", 3, 0)]
    spec = {"original_goal": "g", "sub_goals": [goal]}
    (row,) = static_verdicts(contract(nodes, edges, [3], goal_spec=spec)).coverage
    assert row.cover is cover
