"""Tool-call penalties: the six rules of lean4agenticrl, Appendix I.2."""

from services.process.penalties.actions import ActionReader
from services.process.penalties.answer import penalties_of
from services.process.penalties.evidence import NAMES, Penalty
from services.process.penalties.gamma import StepGamma, gamma

__all__ = ["NAMES", "ActionReader", "Penalty", "StepGamma", "gamma", "penalties_of"]
