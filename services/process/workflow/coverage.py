"""Coverage of the sub-goals: how much of what each requires the workflow gives (as `lean/LeanReward/Coverage.lean`)."""

from __future__ import annotations

from collections.abc import Collection

from services.contracts.workflows import Cover, GoalCover, SubGoal, VariablePredicate, Workflow
from services.process.workflow.graph import arcs_of, every_walk_meets
from services.process.workflow.predicates import entails
from services.process.workflow.variable_chain import Chain


def coverage_of(workflow: Workflow, chain: Chain) -> tuple[GoalCover, ...]:
    """One row for each sub-goal, given the verdict of the variable chain.

    FULL: all required graph predicates hold and every exit establishes the required predicate. PARTIAL: every way to an
    exit has a contributor, but something else is lacking. WEAK: some way avoids the contributors. UNCOVERED: there are
    none.
    """
    goals = workflow.goal_spec.sub_goals if workflow.goal_spec is not None else ()
    return tuple(GoalCover(sub_goal=goal.name, cover=_cover(workflow, goal, chain)) for goal in goals)


def _cover(workflow: Workflow, goal: SubGoal, chain: Chain) -> Cover:
    if not _contributors(workflow, goal):
        return Cover.UNCOVERED
    if not _path_coverage(workflow, goal):
        return Cover.WEAK
    graph = all(_graph_predicate(workflow, goal, predicate.kind) for predicate in goal.required_graph_predicates)
    return Cover.FULL if graph and _established(goal, chain) else Cover.PARTIAL


def _contributors(workflow: Workflow, goal: SubGoal) -> set[int]:
    return {n.id for n in workflow.nodes if any(s.sub_goal_name == goal.name for s in n.sub_goal_contributions)}


def _verifiers(workflow: Workflow, goal: SubGoal) -> set[int]:
    return {n.id for n in workflow.nodes if any(s.sub_goal_name == goal.name for s in n.sub_goal_verifications)}


def _every_way_has(workflow: Workflow, source: int, ids: Collection[int]) -> bool:
    forward, back = arcs_of(workflow)
    arcs = [*forward, *back]
    return all(node in ids or every_walk_meets(arcs, [source], node, ids.__contains__) for node in workflow.exits)


def _path_coverage(workflow: Workflow, goal: SubGoal) -> bool:
    return _every_way_has(workflow, workflow.entry, _contributors(workflow, goal))


def _graph_predicate(workflow: Workflow, goal: SubGoal, kind: str) -> bool:
    """A predicate that is not known does not hold: it must never count as verified."""
    if kind == "pathCoverage":
        return _path_coverage(workflow, goal)
    verifiers = _verifiers(workflow, goal)
    if kind == "verificationCoverage":
        return all(_every_way_has(workflow, node, verifiers) for node in _contributors(workflow, goal))
    if kind == "unifiedLoopBack":
        headers = {header for end, header in arcs_of(workflow)[1] if end in verifiers}
        return len(headers) == 1
    return False


def _established(goal: SubGoal, chain: Chain) -> bool:
    """Whether the facts after every exit give the required predicate; never when the chain does not hold."""
    wanted = VariablePredicate(var_name=goal.variable_name, predicate=goal.required_predicate)
    return bool(chain.exit_facts) and all(entails(facts, wanted) for facts in chain.exit_facts.values())
