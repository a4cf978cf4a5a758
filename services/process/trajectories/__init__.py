"""Agent trajectories, whatever harness wrote them, as one list of steps."""

from services.process.trajectories.formats import FORMATS, detect, read_trajectory
from services.process.trajectories.model import Lapse, Observation, Phase, Step, ToolCall, TrajectoryError

__all__ = [
    "FORMATS",
    "Lapse",
    "Observation",
    "Phase",
    "Step",
    "ToolCall",
    "TrajectoryError",
    "detect",
    "read_trajectory",
]
