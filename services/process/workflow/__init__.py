"""The workflow contract of a plan, and where a segmentation of its execution may go."""

from services.process.workflow.check import WorkflowFault, check_workflow
from services.process.workflow.placement import (
    Placement,
    execution,
    general_graph,
    place_labels,
    place_segments,
    placed,
)
from services.process.workflow.segments import Segmented, SegmentFault, segment_labels, segment_turns
from services.process.workflow.transitions import transitions_of

__all__ = [
    "Placement",
    "SegmentFault",
    "Segmented",
    "WorkflowFault",
    "check_workflow",
    "execution",
    "general_graph",
    "place_labels",
    "place_segments",
    "placed",
    "segment_labels",
    "segment_turns",
    "transitions_of",
]
