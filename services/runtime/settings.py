"""Every setting of the platform, in one place.

A value comes from, in this order: `LEAN_REWARD_<SECTION>_<NAME>` in the environment, the TOML file named by
`LEAN_REWARD_CONFIG` (a table for each section), the default. `lean-reward settings` prints them with their meaning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from services.contracts.evaluator import EvaluationMethod, GuardMode
from services.contracts.outcomes import Profile
from services.contracts.proofs import CutoffPolicy

ENV_PREFIX = "LEAN_REWARD_"
CONFIG_VARIABLE = "LEAN_REWARD_CONFIG"


class SettingsError(Exception):
    """A setting is unknown or has a value that cannot be used; the message names it and where it came from."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QueueSettings(_Section):
    """The Redis queue between gateways and workers."""

    url: SecretStr | None = Field(
        None, description="Redis URL (6.2 or later, Valkey too). Empty: `lean-reward up` starts an embedded server."
    )
    prefix: str = Field("lean-reward", pattern=r"^[A-Za-z0-9:_-]{1,64}$", description="Prefix of every key.")
    lease_s: float = Field(10.0, gt=0, le=600, description="A silent worker's jobs come back after this, seconds.")
    keep_s: float = Field(3600.0, gt=0, description="Results and batches are kept this long, seconds.")
    max_depth: int = Field(200_000, gt=0, description="Waiting jobs beyond which a batch is refused with 429.")
    cache_s: float = Field(7 * 86400.0, ge=0, description="Verdicts are cached this long, seconds; 0 switches it off.")


class LogSettings(_Section):
    """Structured logs on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is written.")
    format: Literal["auto", "json", "console"] = Field(
        "auto", description="`auto`: for a person on a terminal, else one JSON object a line."
    )


class TracingSettings(_Section):
    """OpenTelemetry traces, with the extra `tracing`."""

    endpoint: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Collector that takes OTLP over HTTP; spans go to its /v1/traces. Empty: none.",
    )
    share: float = Field(1.0, ge=0, le=1, description="Share of the batches that are traced.")


class ClientSettings(_Section):
    """Whoever calls a gateway: commands such as `lean-reward score`, and trainers (`docs/trainers/`)."""

    url: str = Field("http://127.0.0.1:8000", pattern=r"^https?://", description="The gateway to call.")
    key: SecretStr | None = Field(None, description="API key to send as a bearer token.")
    deadline_s: float = Field(90.0, gt=0, le=86_400, description="Cutoff of a trainer's batches, seconds.")
    patience_s: float = Field(
        600.0, ge=0, le=86_400, description="So long a gateway may be away before a trainer's call fails, seconds."
    )
    on_failure: Literal["raise", "fallback", "unscorable"] = Field(
        "raise",
        description="What a trainer is given when the server failed: an error, `fallback`, or nothing (where it knows "
        "samples without a reward).",
    )
    fallback: float | None = Field(None, description="The reward of `on_failure` `fallback`; it has no default.")


class KeyLimits(_Section):
    """What one API key may use; nothing that is left out is limited."""

    max_in_flight: int | None = Field(None, gt=0, description="Candidates in flight, on all gateways together.")
    max_batch: int | None = Field(None, gt=0, description="Candidates in one batch.")
    candidates_per_minute: int | None = Field(None, gt=0, description="Candidates a minute; a minute's worth at once.")
    requests_per_minute: int | None = Field(None, gt=0, description="Requests with a body, likewise.")
    max_priority: int | None = Field(None, ge=-100, le=100, description="A higher priority is lowered to this.")
    priority_offset: int = Field(0, ge=-200, le=200, description="Added to the priority, within -100 to 100.")


class GatewaySettings(_Section):
    """The HTTP server."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    keys: SecretStr = Field(
        SecretStr(""), description="API keys as NAME:SHA256 separated by commas; empty: no key is needed."
    )
    key_limits: dict[str, KeyLimits] = Field(
        default_factory=dict,
        description="Limits of a key by its name, `*` for every key that is not named: `max_in_flight`, `max_batch`, "
        "`candidates_per_minute`, `requests_per_minute`, `max_priority`, `priority_offset`.",
    )
    header: str = Field("", description="Header of candidates that bring none; empty suits the embedded Init.")
    profile: Profile = Field(Profile.STRICT, description="Precheck policy of batches that name none.")
    cutoff_policy: CutoffPolicy = Field(CutoffPolicy.EVALUATOR_DONE, description="Cutoff of batches that name none.")
    deadline_s: float = Field(600.0, gt=0, le=86_400, description="Deadline of batches that name none, seconds.")
    lean_timeout_s: float = Field(60.0, gt=0, le=3_600, description="Limit of a check where none is named, seconds.")
    heartbeats: int = Field(800_000, gt=0, description="Lean's budget for a check, thousands of allocations.")
    max_candidates: int = Field(65_536, gt=0, le=65_536, description="Candidates in one batch.")
    max_body_bytes: int = Field(512 * 2**20, gt=0, description="One body after decompression, bytes.")
    max_bodies_bytes: int = Field(2 * 2**30, gt=0, description="All bodies in flight together, bytes.")
    body_timeout_s: float = Field(300.0, gt=0, description="A body must be complete after this, seconds.")
    head_timeout_s: float = Field(
        10.0, gt=0, description="A request's line and headers must be there by then, seconds."
    )
    slow_reader_s: float = Field(
        30.0, gt=0, description="A client that reads none of its answer for so long is disconnected, seconds."
    )
    max_connections: int = Field(10_000, gt=0, description="Connections beyond which one is refused with 503.")
    max_batches: int = Field(512, gt=0, description="Batches in flight beyond which one is refused with 429.")
    max_in_flight: int = Field(
        262_144, gt=0, description="Candidates in flight beyond which a batch is refused with 429."
    )
    shed_from: float = Field(
        0.8,
        gt=0,
        le=1,
        description="Part of every bound (waiting jobs, batches and candidates in flight) that batches of the lowest "
        "priority may fill; the highest may fill all, others in proportion. 1: priority does not matter there.",
    )
    drain_s: float = Field(30.0, ge=0, description="After SIGTERM running batches may go on so long, seconds.")
    evaluator_urls: str = Field(
        "",
        pattern=r"^\s*(https?://[^\s,]+(\s*,\s*https?://[^\s,]+)*)?\s*$",
        description="Evaluators that predict Lean, base URLs separated by commas; empty: none.",
    )
    evaluator_key: SecretStr | None = Field(None, description="API key to send to the evaluators, as a bearer token.")
    evaluator_silence_s: float = Field(
        600.0, gt=0, description="An evaluator that sends nothing for so long has failed, seconds."
    )
    scheduling: Literal["auto", "fifo", "shortest", "value"] = Field(
        "auto",
        description="Which checks of a batch run first; `auto`: `value` with an evaluator, else `shortest` where the "
        "deadline ends the batch, else `fifo`.",
    )
    audit_share: float = Field(
        0.05, ge=0, le=1, description="Part of each hybrid batch that is checked to the end to measure the evaluator."
    )
    audit_timeout_s: float = Field(
        600.0, gt=0, le=3_600, description="Limit of such a check after the cutoff, seconds."
    )
    certify_share: float = Field(
        0.0, ge=0, le=1, description="Part of the groups of agents' rollouts that Lean certifies after their answer."
    )
    guard: GuardMode = Field(
        GuardMode.WARN,
        description="When the audit shows too many false positives: `off`, `warn`, or `act` (predictions of `valid` no "
        "longer give a reward).",
    )
    guard_limit: float = Field(
        0.25, gt=0, lt=1, description="The false-positive rate that the lower bound of the audit must pass."
    )
    quality_window_s: float = Field(
        3_600.0, gt=0, le=7 * 86_400, description="How far back the evaluator's quality looks, seconds."
    )
    labels_kept: int = Field(
        20_000, ge=0, description="Programs with both verdicts kept for `lean-reward label export`; 0: none."
    )


class RecorderSettings(_Section):
    """Batches recorded for `lean-reward replay` and `plan` (`docs/studies.md`). Needs the extra `studies`."""

    folder: Path | None = Field(None, description="Folder for the Parquet files of a gateway; empty: no recording.")
    code: bool = Field(
        False,
        description="Also record programs, and ids and groups as they are; otherwise keyed digests stand for them.",
    )
    buffer: int = Field(
        262_144,
        ge=65_536,
        description="Candidates that wait to be written; batches that find no room are dropped, counted and logged.",
    )
    flush_s: float = Field(30.0, gt=0, le=3_600, description="A file is written at least so often, seconds.")


class CompatSettings(_Section):
    """The routes that speak other programs' protocols (`/compat/...`, Kimina's), where a call carries one sample."""

    limit_s: float = Field(90.0, gt=0, le=95, description="A sample is answered after this at the latest, seconds.")
    window_s: float = Field(0.05, ge=0, le=5, description="Samples that arrive within this are one batch, seconds.")
    group_wait_s: float = Field(
        10.0, ge=0, le=90, description="So long a group that names its `group_size` may wait to be complete, seconds."
    )
    max_batch: int = Field(4_096, ge=1, le=65_536, description="Samples that are joined into one batch at most.")
    undecided: float = Field(
        0.0, description="Reward of a sample that nobody decided; its answer says `status` `fallback`."
    )
    on_failure: Literal["error", "fallback"] = Field(
        "error",
        description="When our own part fails: `error` answers 503, which trainers retry and then report; `fallback` "
        "answers `undecided` with `status` `fallback`.",
    )
    prepend_header: bool = Field(False, description="Give code without imports the header, instead of rejecting it.")
    kimina_limit_s: float = Field(
        540.0, gt=0, le=3_600, description="A call of a Kimina client is answered after this at the latest, seconds."
    )
    kimina_wait_s: float = Field(60.0, ge=0, le=3_600, description="So long such a call may wait for room, seconds.")


class WorkerSettings(_Section):
    """A Lean worker process and the engines it owns."""

    engine: Literal["embedded", "repl"] = Field("embedded", description="Which Lean runs the checks.")
    count: int | None = Field(None, ge=1, le=1024, description="Engines in one worker process; empty: one a core.")
    name: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._:-]{1,100}$",
        description="Unique name of this worker; empty: host, process, random.",
    )
    headers: tuple[str, ...] = Field(("",), description="Headers that are opened before the first job is taken.")
    claim_ahead: int = Field(
        1, ge=0, le=64, description="Jobs taken beyond the idle engines, so that none waits for the queue's answer."
    )
    drain_s: float = Field(2.0, ge=0, le=600, description="After SIGTERM running checks may go on so long, seconds.")
    host: str = Field("127.0.0.1", description="Address of the worker's own /metrics, /healthz and /readyz.")
    port: int = Field(0, ge=0, le=65535, description="Port of the worker's own /metrics; 0 switches it off.")


class LeanSettings(_Section):
    """The embedded Lean."""

    home: Path | None = Field(
        None, description="Folder of the embedded Lean; empty: the user's cache folder of the platform."
    )


class ReplSettings(_Section):
    """The native Lean through the Lean REPL."""

    folder: Path | None = Field(None, description="Folder of a built Lean REPL (`.lake/build/bin/repl` in it).")
    project: Path | None = Field(
        None, description="Lake project whose dependencies programs may import; empty: the REPL's own folder."
    )
    lake: str = Field("lake", min_length=1, description="The toolchain's `lake`, a path or a name on the PATH.")
    toolchain: str | None = Field(
        None, description="Lean version of the project; empty: as its `lean-toolchain` file says."
    )
    memory_mb: int = Field(8192, ge=128, description="Memory limit of one REPL, MiB; it is restarted on growth.")
    cpus: float = Field(4.0, gt=0, description="Processor seconds that a check may use for each second of its limit.")
    scratch_mb: int = Field(512, ge=16, description="Size of a REPL's private folder, MiB.")
    headers: int = Field(4, ge=1, le=64, description="Import blocks kept warm in one REPL; the least used goes first.")
    max_checks: int = Field(500, ge=1, description="Checks after which a REPL is restarted, as it never frees memory.")
    start_timeout_s: float = Field(180.0, gt=0, description="Longest start of a REPL or import of a header, seconds.")
    tier: Literal["fast", "replay"] = Field(
        "fast",
        description="`fast`: probes in a candidate's own environment where it cannot have changed the language, else "
        "as `replay`: probes in an environment to which only its constants were carried over (docs/security.md).",
    )
    sandbox: Literal["auto", "bubblewrap", "landlock", "off"] = Field(
        "auto", description="How REPLs are confined; `off` runs candidates unconfined, on your own responsibility."
    )
    read_only: tuple[Path, ...] = Field((), description="Further folders that REPLs may read.")


class EvaluatorSettings(_Section):
    """The evaluator: an HTTP server of its own in front of the learned models."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8100, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    keys: SecretStr = Field(
        SecretStr(""), description="API keys as NAME:SHA256 separated by commas; empty: no key is needed."
    )
    engine: Literal["linear", "vllm", "transformers", "llamacpp"] = Field(
        "linear", description="What runs the models; `linear` is a demonstration that needs no model and no GPU."
    )
    method: EvaluationMethod = Field(EvaluationMethod.CASCADE, description="Method of requests that name none.")
    threshold: float = Field(0.5, ge=0, le=1, description="Programs that the gate scores below are rejected.")
    samples: int = Field(5, ge=1, le=64, description="Traces of a program in self-consistency.")
    temperature: float = Field(0.8, gt=0, le=5, description="Temperature of these traces.")
    quorum: int = Field(4, ge=1, le=64, description="So many of them must accept.")
    tags: bool = Field(False, description="Let a validity tag that follows a whole copy of the program decide.")
    gate: str | None = Field(None, description="Model of the gate: a folder, a GGUF file, or a name for vLLM.")
    feedback: str | None = Field(None, description="Feedback model, likewise.")
    gate_context: int = Field(32_768, ge=16, description="Tokens of the gate; of longer programs both ends are kept.")
    feedback_context: int = Field(
        32_768, ge=16, description="Tokens of the feedback model, read and written; it rejects programs of over half."
    )
    toolchain: str | None = Field(None, description="Lean version that models without a card were trained to predict.")
    start_s: float = Field(900.0, gt=0, description="Longest start of a model server, seconds.")
    max_tokens: int = Field(16_384, ge=1, description="Longest trace, tokens; one that reaches it counts as invalid.")
    gate_tokens: int = Field(131_072, ge=1, description="Tokens of programs that one gate holds at once.")
    feedback_tokens: int = Field(524_288, ge=1, description="Tokens, read and written, of one feedback model at once.")
    chunk: int = Field(64, ge=1, le=4096, description="Programs that the gate is given at once.")
    max_in_flight: int = Field(131_072, gt=0, description="Programs in flight beyond which a request gets 429.")
    max_body_bytes: int = Field(512 * 2**20, gt=0, description="One body, bytes.")
    body_timeout_s: float = Field(300.0, gt=0, description="A body must be complete after this, seconds.")
    silence_s: float = Field(300.0, gt=0, description="An engine without an answer for so long has failed, seconds.")
    health_s: float = Field(10.0, gt=0, description="Engines are asked for their health so often, seconds.")
    turn_s: float = Field(
        120.0, gt=0, description="Longest turn of a model on a GPU that holds one at a time, seconds."
    )
    drain_s: float = Field(30.0, ge=0, description="After SIGTERM running requests may go on so long, seconds.")


class LlamaCppSettings(_Section):
    """The evaluator's engine `llamacpp`: one server a model, on this machine."""

    slots: int = Field(4, ge=1, le=256, description="Programs that a model works on at once.")
    threads: int = Field(1, ge=1, le=512, description="Threads of a model.")
    gpu_layers: int = Field(0, ge=0, description="Layers of a model on a GPU, where llama.cpp can use one.")


class VllmSettings(_Section):
    """The evaluator's engine `vllm`: servers at URLs, or started by the evaluator."""

    gate_urls: tuple[str, ...] = Field((), description="Running servers of the gate; empty: they are started here.")
    feedback_urls: tuple[str, ...] = Field((), description="Running servers of the feedback model, one for each gate.")
    key: SecretStr | None = Field(None, description="API key of these servers.")
    command: tuple[str, ...] = Field(("vllm", "serve"), min_length=1, description="How a server is started.")
    gpus: tuple[str, ...] = Field(("0",), min_length=1, description="GPUs, one for each pair of servers.")
    layout: Literal["split", "sleep", "restart"] = Field(
        "split", description="Both models on a GPU at once; in turns, one asleep; in turns, started again each time."
    )
    gate_memory: float = Field(0.55, gt=0, le=1, description="Part of a GPU's memory for the gate.")
    feedback_memory: float = Field(0.35, gt=0, le=1, description="Part of it for the feedback model.")
    turn_memory: float = Field(0.9, gt=0, le=1, description="Part of it for the one that has its turn.")
    gate_quantization: Literal["none", "fp8", "fp8_per_channel"] = Field(
        "none", description="FP8 needs a GPU of compute capability 8.9 or later."
    )
    feedback_quantization: Literal["none", "fp8", "fp8_per_channel"] = Field("none", description="Likewise.")
    speculation: int = Field(8, ge=0, le=32, description="Tokens that the feedback model drafts by n-gram; 0: none.")
    gate_arguments: tuple[str, ...] = Field((), description="More arguments of the gate's server.")
    feedback_arguments: tuple[str, ...] = Field((), description="More arguments of the feedback model's server.")


class JudgeSettings(_Section):
    """The language model that formalises plans, segments trajectories and judges stages of agents' rollouts."""

    url: str | None = Field(
        None,
        pattern=r"^https?://",
        description="Base URL of an OpenAI-compatible endpoint, such as http://host:8000/v1; empty: stages are not "
        "judged.",
    )
    key: SecretStr | None = Field(None, description="API key to send to it, as a bearer token.")
    model: str = Field("judge", min_length=1, description="Name of the model at the endpoint.")
    replicas: int = Field(3, ge=1, le=15, description="Judgements of each stage, of which the majority counts.")
    temperature: float = Field(0.6, ge=0, le=2, description="Sampling temperature; each replica has its own seed.")
    concurrency: int = Field(64, ge=1, le=4096, description="Calls in flight at once.")
    timeout_s: float = Field(60.0, gt=0, le=3_600, description="Limit of one call, seconds.")
    retries: int = Field(2, ge=0, le=10, description="Further tries of a call that failed or gave a malformed answer.")
    chunk_tokens: int = Field(16_384, ge=1_024, description="Largest part of a record in one call, estimated tokens.")
    reasoning_tokens: int = Field(
        4_096, ge=0, description="Tokens that a model may spend on its reasoning before it answers."
    )
    cache_s: float = Field(7 * 86400.0, ge=0, description="Answers are remembered this long, seconds; 0: never.")
    votes_s: float = Field(7 * 86400.0, gt=0, description="Votes can be fetched this long, seconds (GET /v1/votes/ID).")


class Settings(BaseSettings):
    """All settings. Build it with `load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="_", env_nested_max_split=1, extra="forbid", frozen=True
    )

    queue: QueueSettings = QueueSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings = TracingSettings()
    client: ClientSettings = ClientSettings()
    gateway: GatewaySettings = GatewaySettings()
    recorder: RecorderSettings = RecorderSettings()
    compat: CompatSettings = CompatSettings()
    worker: WorkerSettings = WorkerSettings()
    lean: LeanSettings = LeanSettings()
    repl: ReplSettings = ReplSettings()
    evaluator: EvaluatorSettings = EvaluatorSettings()
    judge: JudgeSettings = JudgeSettings()
    llamacpp: LlamaCppSettings = LlamaCppSettings()
    vllm: VllmSettings = VllmSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        sources: list[PydanticBaseSettingsSource] = [init_settings, env_settings]
        if path := os.environ.get(CONFIG_VARIABLE):
            sources.append(TomlConfigSettingsSource(settings_cls, toml_file=path))
        return tuple(sources)


def load_settings(**overrides: dict[str, Any]) -> Settings:
    """Read the settings; `overrides` maps a section to values that win over every other source.

    Raises:
        SettingsError: an unknown section, name or value, or a missing or malformed TOML file.
    """
    path = os.environ.get(CONFIG_VARIABLE)
    if path and not Path(path).is_file():
        raise SettingsError(f"{CONFIG_VARIABLE} names {path!r}, and there is no such file")
    known = {variable for variable, *_ in describe()} | {CONFIG_VARIABLE}
    for name in sorted(os.environ):
        if name.startswith(ENV_PREFIX) and name not in known:
            raise SettingsError(f"the environment variable {name} is no setting; `lean-reward settings` lists them")
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        places = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SettingsError(f"settings: {places}") from None
    except ValueError as error:  # malformed TOML
        raise SettingsError(f"settings: {path or 'environment'}: {error}") from None


def describe() -> Iterator[tuple[str, str, str, str]]:
    """Yield (environment variable, section, name, meaning) for every setting, in the order of the sections."""
    for section, field in Settings.model_fields.items():
        model = field.annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise TypeError(f"section {section} is no model")
        for name, info in model.model_fields.items():
            yield f"{ENV_PREFIX}{section}_{name}".upper(), section, name, info.description or ""
