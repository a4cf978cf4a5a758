"""Segmentations that are given: used as they are, their legality reported (lean4agenticrl, Appendix H.2 and Figure 4).

A turn is legal when it stays in its stage visit, advances along a forward arc or loops back along a declared one; each
entry into a node is a visit of its own, numbered from 0. The cursor starts at the entry, in its visit 0. This is
``lean/LeanReward/Segmentation.lean``, with the decision of each turn read off the assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from services.contracts.trajectories import Segment
from services.contracts.workflows import Workflow
from services.process.certificates.claims import Decision, Row
from services.process.workflow.transitions import transitions_of


class SegmentFault(ValueError):
    """Segments that cannot be used at all. ``index`` is the segment, None when turns are missing."""

    def __init__(self, index: int | None, message: str) -> None:
        super().__init__(message if index is None else f"segment {index}: {message}")
        self.index = index
        self.message = message


@dataclass(frozen=True, slots=True)
class Segmented:
    """One row a turn, in order. ``illegal`` are the turns that no decision allows; after such a turn the cursor stands
    where the turn says, so that one jump is one complaint.
    """

    rows: tuple[Row, ...]
    illegal: tuple[int, ...]

    @property
    def legal(self) -> bool:
        return not self.illegal


def segment_turns(workflow: Workflow, segments: Sequence[Segment], turns: int) -> Segmented:
    """The rows of ``turns`` turns from given segments, one for each turn in any order.

    Raises ``SegmentFault`` for a node that is not there, a turn that is assigned twice, lies beyond the trajectory or
    has no segment: those cannot be used. What can be used and breaks the workflow is reported in ``illegal``.
    """
    nodes = {node.id for node in workflow.nodes}
    by_turn: dict[int, Segment] = {}
    for index, segment in enumerate(segments):
        if segment.node not in nodes:
            raise SegmentFault(index, f"there is no node {segment.node}")
        if segment.turn_idx >= turns:
            raise SegmentFault(index, f"turn {segment.turn_idx} of a trajectory of {turns}")
        if segment.turn_idx in by_turn:
            raise SegmentFault(index, f"turn {segment.turn_idx} is assigned twice")
        by_turn[segment.turn_idx] = segment
    missing = next((turn for turn in range(turns) if turn not in by_turn), None)
    if missing is not None:
        raise SegmentFault(None, f"turn {missing} has no segment")
    return _walk(workflow, [by_turn[turn] for turn in range(turns)])


def segment_labels(workflow: Workflow, labels: Sequence[str | None]) -> Segmented:
    """The rows of turns from stage labels: a node's id or name, or a general stage that one node alone is aligned
    with.

    A label that changes enters a new visit; a turn without one stays (before any label: at the entry). Raises
    ``SegmentFault`` for a label that names no node, or several.
    """
    named = _names(workflow)
    entered: Counter[int] = Counter({workflow.entry: 1})
    node, visit, last = workflow.entry, 0, None
    segments: list[Segment] = []
    for turn, label in enumerate(labels):
        if label is not None and label != last:
            found = named.get(label, [])
            if len(found) != 1:
                raise SegmentFault(turn, f"the stage {label!r} names {len(found)} nodes of the workflow")
            if not (found[0] == node and last is None):
                node, visit = found[0], entered[found[0]]
                entered[node] += 1
            last = label
        segments.append(Segment(turn_idx=turn, node=node, visit=visit))
    return _walk(workflow, segments)


def _names(workflow: Workflow) -> dict[str, list[int]]:
    """Labels by precedence: a node's id, its name, its general stage."""
    named: dict[str, list[int]] = {str(node.id): [node.id] for node in workflow.nodes}
    for attribute in ("name", "general_stage"):
        found: dict[str, list[int]] = {}
        for node in workflow.nodes:
            found.setdefault(getattr(node, attribute), []).append(node.id)
        for label, nodes in found.items():
            named.setdefault(label, nodes)
    return named


def _walk(workflow: Workflow, segments: Sequence[Segment]) -> Segmented:
    transitions = transitions_of(workflow)
    forward, back = set(transitions.forward), set(transitions.back)
    node, visit = workflow.entry, 0
    entered: Counter[int] = Counter({node: 1})
    rows: list[Row] = []
    illegal: list[int] = []
    for turn, segment in enumerate(segments):
        arc = (node, segment.node)
        fresh = segment.visit == entered[segment.node]
        if (segment.node, segment.visit) == (node, visit):
            decision = Decision.STAY
        elif fresh and arc in forward:
            decision = Decision.ADVANCE
        elif fresh and arc in back:
            decision = Decision.LOOP_BACK
        else:
            decision = Decision.LOOP_BACK if arc in back else Decision.ADVANCE
            illegal.append(turn)
        if decision is not Decision.STAY:
            node, visit = segment.node, segment.visit
            entered[node] = max(entered[node], visit + 1)
        rows.append(Row(decision, segment.node, segment.visit))
    return Segmented(tuple(rows), tuple(illegal))
