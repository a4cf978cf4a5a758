"""Where each step of a trajectory stands: its node, its visit and its general stage.

Only the execution phase has stages. A segmentation that is given (`segments`, or `stage` labels on the steps) is used
as it is; without a workflow its nodes are the stages of the general workflow, node i the i-th.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from services.contracts.trajectories import Segment
from services.contracts.workflows import Workflow, WorkflowNode
from services.process.certificates.claims import Row, Visit
from services.process.trajectories import Phase, Step
from services.process.workflow.segments import Segmented, SegmentFault, segment_labels, segment_turns

PLAN_PLACE = ("plan", 0)


def general_graph(general_workflow: Sequence[str]) -> Workflow:
    """The general workflow as a contract: one node a stage. Its order says nothing of the plan, so it has no arcs."""
    nodes = tuple(WorkflowNode(id=i, name=stage[:200], general_stage=stage) for i, stage in enumerate(general_workflow))
    return Workflow(name="general", goal="", nodes=nodes, entry=0, exits=(len(nodes) - 1,))


def execution(steps: Sequence[Step]) -> list[Step]:
    """The turns that a segmentation is about."""
    return [step for step in steps if step.phase is Phase.EXEC]


@dataclass(frozen=True, slots=True)
class Placement:
    """A segmentation over the steps of one trajectory. `rows` has an entry a step, None for planning."""

    workflow: Workflow
    rows: tuple[Row | None, ...]
    illegal: tuple[int, ...] = ()
    """Steps that no decision of the workflow allows."""
    stages: dict[int, str] = field(init=False)
    """The general stage of each node."""
    visits: dict[Visit, list[int]] = field(init=False)
    """The steps of each stage visit, visits in the order of their first step."""

    def __post_init__(self) -> None:
        visits: dict[Visit, list[int]] = {}
        for step, row in enumerate(self.rows):
            if row is not None:
                visits.setdefault((row.node, row.visit), []).append(step)
        object.__setattr__(self, "visits", visits)
        object.__setattr__(self, "stages", {node.id: node.general_stage for node in self.workflow.nodes})

    def general_stage(self, step: int) -> str | None:
        row = self.rows[step]
        return None if row is None else self.stages[row.node]

    def places(self) -> list[tuple[str, int]]:
        """Each step's stage visit as the penalty rules want it."""
        return [PLAN_PLACE if row is None else (str(row.node), row.visit) for row in self.rows]


def place_segments(workflow: Workflow, segments: Sequence[Segment], steps: Sequence[Step]) -> Placement:
    """A given segmentation; `turn_idx` is the index of a step, and every execution step needs one segment.

    Raises `SegmentFault` when it cannot be used: a node that is not there, a step without a segment, with two, or of
    the planning phase.
    """
    turns = execution(steps)
    ordinal = {step.index: turn for turn, step in enumerate(turns)}
    moved = []
    for index, segment in enumerate(segments):
        if segment.turn_idx >= len(steps):
            raise SegmentFault(index, f"turn {segment.turn_idx} of a trajectory of {len(steps)}")
        if segment.turn_idx not in ordinal:
            raise SegmentFault(index, f"turn {segment.turn_idx} belongs to the planning phase, which has no stages")
        moved.append(segment.model_copy(update={"turn_idx": ordinal[segment.turn_idx]}))
    try:
        return placed(workflow, segment_turns(workflow, moved, len(turns)), steps)
    except SegmentFault as fault:
        if fault.index is not None:
            raise
        given = {segment.turn_idx for segment in segments}  # its message counts execution steps only
        missing = next(step.index for step in turns if step.index not in given)
        raise SegmentFault(None, f"turn {missing} has no segment") from None


def place_labels(workflow: Workflow, steps: Sequence[Step]) -> Placement:
    """The segmentation that the `stage` labels of the steps say. Raises `SegmentFault`; its `index` is the step."""
    turns = execution(steps)
    try:
        segmented = segment_labels(workflow, [step.stage for step in turns])
    except SegmentFault as fault:
        index = None if fault.index is None else turns[fault.index].index
        raise SegmentFault(index, fault.message) from None
    return placed(workflow, segmented, steps)


def placed(workflow: Workflow, segmented: Segmented, steps: Sequence[Step]) -> Placement:
    """A segmentation of the execution steps, laid over all steps."""
    turns = execution(steps)
    rows: list[Row | None] = [None] * len(steps)
    for step, row in zip(turns, segmented.rows, strict=True):
        rows[step.index] = row
    return Placement(workflow, tuple(rows), tuple(turns[turn].index for turn in segmented.illegal))
