"""The workflow contract of a plan: a graph of nodes with pre- and postconditions (lean4agenticrl, Section 2.2)."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import Field

from services.contracts.base import Integer, Name, Wire

Key = Annotated[str, Field(min_length=1, max_length=200)]
NodeId = Annotated[Integer, Field(ge=0, le=9_999)]


class Predicate(Wire):
    """One condition. `kind` names it in the registry; `custom` conditions are judged, the others decided by code."""

    kind: Key
    custom_name: Key | None = None
    args: dict[Key, Any] = Field(default_factory=dict)


class VariablePredicate(Wire):
    var_name: Key
    predicate: Predicate


class Parameter(Wire):
    name: Key
    type: Key = "string"


class SubGoalShare(Wire):
    """A node's contribution to a sub-goal, or its verification of one."""

    sub_goal_name: Key


class WorkflowNode(Wire):
    """A stage of one plan."""

    id: NodeId
    name: Key
    step_type: Key = "step"
    general_stage: Name = Field(description="The stage of the general workflow that this node is aligned with.")
    instruction: str = ""
    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()
    precond_extra: tuple[VariablePredicate, ...] = ()
    postcond_extra: tuple[VariablePredicate, ...] = ()
    info_requires: tuple[Key, ...] = ()
    produces_variable_info: dict[Key, tuple[Key, ...]] = Field(default_factory=dict)
    produces_context_info: tuple[Key, ...] = ()
    sub_goal_contributions: tuple[SubGoalShare, ...] = ()
    sub_goal_verifications: tuple[SubGoalShare, ...] = ()


class SeqEdge(Wire):
    edge_type: Literal["seq"]
    from_node: NodeId
    to_node: NodeId


class BranchEdge(Wire):
    edge_type: Literal["branch"]
    cond_node: NodeId
    then_node: NodeId
    else_node: NodeId


class LoopEdge(Wire):
    edge_type: Literal["loop"]
    header: NodeId
    body_entry: NodeId
    exit: NodeId


class LoopBackEdge(Wire):
    edge_type: Literal["loop_back"]
    body_end: NodeId
    header: NodeId


Edge = Annotated[SeqEdge | BranchEdge | LoopEdge | LoopBackEdge, Field(discriminator="edge_type")]


class SubGoal(Wire):
    name: Key
    variable_name: Key
    required_predicate: Predicate
    required_graph_predicates: tuple[Predicate, ...] = ()


class GoalSpec(Wire):
    original_goal: str
    sub_goals: tuple[SubGoal, ...] = ()


class Workflow(Wire):
    """A plan as a graph. References between its parts are checked where it is used, with a JSON pointer each."""

    name: Key
    goal: str
    parameters: tuple[Parameter, ...] = ()
    param_postcond: tuple[VariablePredicate, ...] = ()
    nodes: Annotated[tuple[WorkflowNode, ...], Field(min_length=1, max_length=500)]
    edges: Annotated[tuple[Edge, ...], Field(max_length=5_000)] = ()
    entry: NodeId
    exits: Annotated[tuple[NodeId, ...], Field(min_length=1)]
    goal_spec: GoalSpec | None = None


class MissingFact(Wire):
    """The first precondition that the available facts do not entail."""

    node: int
    fact: VariablePredicate
    available: tuple[VariablePredicate, ...]


class ChainVerdict(str, Enum):
    HOLDS = "holds"
    MISSING = "missing"
    NOT_ORDERED = "not_ordered"


class VariableChain(Wire):
    """Whether every precondition is entailed along the graph (Hoare). `not_ordered`: the forward arcs have a cycle."""

    verdict: ChainVerdict
    missing: MissingFact | None = None


class NodeInformation(Wire):
    """Where each information atom that a node requires is visible."""

    node: int
    required: tuple[str, ...]
    via_variable: tuple[str, ...]
    via_context: tuple[str, ...]
    missing: tuple[str, ...]


class Cover(str, Enum):
    FULL = "full"
    PARTIAL = "partial"
    WEAK = "weak"
    UNCOVERED = "uncovered"


class GoalCover(Wire):
    sub_goal: str
    cover: Cover


class StaticVerdicts(Wire):
    """Three independent verdicts; a negative one is a valid answer."""

    variable_chain: VariableChain
    information: tuple[NodeInformation, ...] = Field(description="Nodes that require an atom.")
    coverage: tuple[GoalCover, ...]


class WorkflowReport(Wire):
    """A formalised plan's verdicts and provenance."""

    verdicts: StaticVerdicts
    degraded: bool = Field(description="The general workflow stands in for a plan that could not be formalised.")
    repairs: int = Field(ge=0, description="Malformed outputs before this one.")
    model: str
    prompt_version: str
