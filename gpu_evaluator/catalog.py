"""Which engines the settings ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from gpu_evaluator.card import CardError, Role, declared_toolchain
from gpu_evaluator.pool import InTurns, Pair, Stage, Swap
from services.contracts.evaluator import EvaluationMethod
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
    if evaluator.engine == "vllm":
        return _vllm(settings)
    return _transformers(settings)


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


def _vllm(settings: Settings) -> list[Pair]:
    if settings.vllm.gate_urls or settings.vllm.feedback_urls:
        return _vllm_elsewhere(settings)
    return [_vllm_here(settings, gpu) for gpu in settings.vllm.gpus]


def _vllm_elsewhere(settings: Settings) -> list[Pair]:
    from gpu_evaluator.engines.serving.servers import RemoteServer
    from gpu_evaluator.engines.vllm.engine import VllmFeedback, VllmGate

    evaluator, vllm = settings.evaluator, settings.vllm
    if len(vllm.gate_urls) != len(vllm.feedback_urls):
        raise SettingsError("vllm.feedback_urls: as many are needed as vllm.gate_urls")
    key = vllm.key.get_secret_value() if vllm.key else None
    pairs = []
    for number, (gate_url, feedback_url) in enumerate(zip(vllm.gate_urls, vllm.feedback_urls, strict=True)):
        if gate_url.rstrip("/") == feedback_url.rstrip("/"):
            raise SettingsError("vllm.feedback_urls: gate and feedback model need servers of their own")
        gate = VllmGate(RemoteServer(gate_url), evaluator.toolchain, key)
        feedback = VllmFeedback(RemoteServer(feedback_url), evaluator.toolchain, evaluator.max_tokens, key)
        pairs.append(Pair(f"vllm-{number}", gate, feedback, _room(evaluator)))
    return pairs


def _vllm_here(settings: Settings, gpu: str) -> Pair:
    from gpu_evaluator.engines.serving.servers import ChildServer
    from gpu_evaluator.engines.vllm.command import ServerPlan, feedback_command, gate_command
    from gpu_evaluator.engines.vllm.engine import AsleepInTurns, VllmFeedback, VllmGate

    evaluator, vllm = settings.evaluator, settings.vllm
    split = vllm.layout == "split"
    if split and vllm.gate_memory + vllm.feedback_memory > 1:
        raise SettingsError("vllm.gate_memory: with vllm.feedback_memory it is more than the whole GPU")
    gate_plan = ServerPlan(
        command=vllm.command,
        model=_needed("gate", evaluator.gate),
        context=evaluator.gate_context,
        memory=vllm.gate_memory if split else vllm.turn_memory,
        gpu=gpu,
        quantization=vllm.gate_quantization,
        sleeps=vllm.layout == "sleep",
        arguments=vllm.gate_arguments,
    )
    feedback_plan = replace(
        gate_plan,
        model=_needed("feedback", evaluator.feedback),
        context=evaluator.feedback_context,
        memory=vllm.feedback_memory if split else vllm.turn_memory,
        quantization=vllm.feedback_quantization,
        arguments=vllm.feedback_arguments,
    )
    try:
        gate_command(gate_plan, 0)
    except ValueError as error:
        raise SettingsError(f"vllm.gate_arguments: {error}") from error
    turn = asyncio.Lock()
    gate_server = ChildServer(
        lambda port: gate_command(gate_plan, port),
        environment=gate_plan.environment,
        start_s=evaluator.start_s,
        turn=turn,
    )
    feedback_server = ChildServer(
        lambda port: feedback_command(feedback_plan, port, vllm.speculation),
        environment=feedback_plan.environment,
        start_s=evaluator.start_s,
        turn=turn,
    )
    gate = VllmGate(gate_server, _toolchain(evaluator, "gate", gate_plan.model, "gate"))
    toolchain = _toolchain(evaluator, "feedback", feedback_plan.model, "feedback")
    feedback = VllmFeedback(feedback_server, toolchain, evaluator.max_tokens)
    swaps: dict[str, Callable[[], Swap | None]] = {
        "split": lambda: None,
        "sleep": lambda: AsleepInTurns(gate, feedback),
        "restart": lambda: InTurns(gate, feedback),
    }
    return Pair(f"vllm-gpu{gpu}", gate, feedback, _room(evaluator), swap=swaps[vllm.layout]())


def _transformers(settings: Settings) -> list[Pair]:
    """The gate in this process; its feedback model on a vLLM server at a URL, or none."""
    from gpu_evaluator.engines.absent import NoFeedback
    from gpu_evaluator.engines.serving.servers import RemoteServer
    from gpu_evaluator.engines.transformers.gate import TransformersGate
    from gpu_evaluator.engines.vllm.engine import VllmFeedback

    evaluator, vllm = settings.evaluator, settings.vllm
    if find_spec("torch") is None or find_spec("transformers") is None:
        extra = "pip install 'lean-reward[evaluator-transformers]'"
        raise SettingsError(f"evaluator.engine: transformers needs an extra: {extra}")
    folder = Path(_needed("gate", evaluator.gate)).expanduser()
    if not folder.is_dir():
        raise SettingsError(f"evaluator.gate: there is no folder {folder}")
    toolchain = _toolchain(evaluator, "gate", str(folder), "gate", "encoder")
    gate = TransformersGate(folder, toolchain, context=evaluator.gate_context, batch_tokens=evaluator.gate_context)
    if not vllm.feedback_urls:
        if evaluator.method is not EvaluationMethod.GATE:
            raise SettingsError("evaluator.method: without vllm.feedback_urls it must be gate")
        return [Pair("transformers", gate, NoFeedback(), _room(evaluator))]
    if len(vllm.feedback_urls) > 1:
        raise SettingsError("vllm.feedback_urls: one at most beside a gate on transformers")
    key = vllm.key.get_secret_value() if vllm.key else None
    feedback = VllmFeedback(RemoteServer(vllm.feedback_urls[0]), evaluator.toolchain, evaluator.max_tokens, key)
    return [Pair("transformers", gate, feedback, _room(evaluator))]


def _toolchain(settings: EvaluatorSettings, name: str, model: str, *roles: Role) -> str | None:
    """The Lean that a model was trained for, as its card says; the setting speaks for models without a card."""
    try:
        return declared_toolchain(model, roles, settings.toolchain)
    except CardError as error:
        raise SettingsError(f"evaluator.{name}: {error}") from error


def _needed(name: str, model: str | None) -> str:
    if not model:
        raise SettingsError(f"evaluator.{name}: this engine needs a model")
    return model


def _room(settings: EvaluatorSettings) -> dict[Stage, int]:
    return {Stage.GATE: settings.gate_tokens, Stage.FEEDBACK: settings.feedback_tokens}
