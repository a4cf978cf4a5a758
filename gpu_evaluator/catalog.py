"""Which engines the settings ask for."""

from __future__ import annotations

from pathlib import Path

from gpu_evaluator.engines.linear.engine import LinearFeedback, LinearGate
from gpu_evaluator.pool import Pair, Stage
from services.runtime.settings import EvaluatorSettings, Settings, SettingsError


def make_pairs(settings: Settings) -> list[Pair]:
    """The pairs of engines, not started yet. Raises `SettingsError` when the settings do not suffice."""
    evaluator = settings.evaluator
    if evaluator.engine == "linear":
        return [_linear(evaluator)]
    raise SettingsError(f"evaluator.engine: {evaluator.engine} is not built yet")


def _linear(settings: EvaluatorSettings) -> Pair:
    gate, feedback = (Path(path) if path else None for path in (settings.gate, settings.feedback))
    return Pair("linear", LinearGate(gate), LinearFeedback(feedback or gate), _room(settings))


def _room(settings: EvaluatorSettings) -> dict[Stage, int]:
    return {Stage.GATE: settings.gate_tokens, Stage.FEEDBACK: settings.feedback_tokens}
