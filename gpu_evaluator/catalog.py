"""Which engines the settings ask for."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from gpu_evaluator.pool import Pair, Stage
from services.runtime.settings import EvaluatorSettings, Settings, SettingsError


def make_pairs(settings: Settings) -> list[Pair]:
    """The pairs of engines, not started yet. Raises `SettingsError` when the settings do not suffice."""
    evaluator = settings.evaluator
    if evaluator.quorum > evaluator.samples:
        raise SettingsError("evaluator.quorum: more than evaluator.samples")
    if evaluator.engine == "linear":
        return [_linear(evaluator)]
    if evaluator.engine == "llamacpp":
        return [_llamacpp(settings)]
    raise SettingsError(f"evaluator.engine: {evaluator.engine} is not built yet")


def _linear(settings: EvaluatorSettings) -> Pair:
    from gpu_evaluator.engines.linear.engine import LinearFeedback, LinearGate

    gate, feedback = (Path(path) if path else None for path in (settings.gate, settings.feedback))
    return Pair("linear", LinearGate(gate), LinearFeedback(feedback or gate), _room(settings))


def _llamacpp(settings: Settings) -> Pair:
    from gpu_evaluator.engines.llamacpp.engine import LlamaCppFeedback, LlamaCppGate, LlamaCppOptions

    if find_spec("xllamacpp") is None:
        raise SettingsError("evaluator.engine: llamacpp needs an extra: pip install 'lean-reward[evaluator-llamacpp]'")
    evaluator, here = settings.evaluator, settings.llamacpp

    def options(name: str, model: str | None, context: int) -> LlamaCppOptions:
        path = Path(_needed(name, model)).expanduser()
        if not path.is_file():
            raise SettingsError(f"evaluator.{name}: there is no file {path}")
        return LlamaCppOptions(path, context, here.slots, here.threads, here.gpu_layers, evaluator.start_s)

    gate = LlamaCppGate(options("gate", evaluator.gate, evaluator.gate_context), evaluator.toolchain)
    feedback = LlamaCppFeedback(
        options("feedback", evaluator.feedback, evaluator.feedback_context), evaluator.toolchain, evaluator.max_tokens
    )
    return Pair("llamacpp", gate, feedback, _room(evaluator))


def _needed(name: str, model: str | None) -> str:
    if not model:
        raise SettingsError(f"evaluator.{name}: this engine needs a model")
    return model


def _room(settings: EvaluatorSettings) -> dict[Stage, int]:
    return {Stage.GATE: settings.gate_tokens, Stage.FEEDBACK: settings.feedback_tokens}
