"""`lean-reward lean doctor`: what is installed, whether every byte of it is right, and whether it checks proofs."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lean_worker.engines.base import Engine, EngineUnavailable, HeaderError
from lean_worker.engines.embedded.layout import Installation, node_executable
from lean_worker.engines.embedded.manifest import LEAN, deep_faults, quick_faults, read_manifest
from lean_worker.engines.embedded.process import HostProcess
from services.contracts.lean import CheckTask
from services.contracts.outcomes import Verdict
from services.proofs.verdict import judge

_REPEATS = 20
_MEMORY_MB = 1024
_STATEMENT = "theorem doctor (a b : Nat) : a + b = b + a"
_SPECIMENS = (
    ("a right proof", f"{_STATEMENT} := by omega", Verdict.VALID),
    ("a wrong proof", f"{_STATEMENT} := by rfl", Verdict.INVALID),
    ("a placeholder", f"{_STATEMENT} := by sorry", Verdict.INVALID),
    ("another statement", "theorem doctor (a b : Nat) : a + b = a + b := by rfl", Verdict.INVALID),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what was found, whether it is as it should be, and how long it took, seconds."""

    what: str
    ok: bool
    detail: str
    seconds: float | None = None
    facts: dict[str, object] = field(default_factory=dict)


def examine(installation: Installation, make_engine: Callable[[], Engine]) -> Iterator[Finding]:
    """Look at everything, in order; stops at the first thing without which the rest cannot be looked at."""
    node = _node()
    yield node
    files = _files(installation)
    yield files
    yield _snapshots(installation.snapshots)
    if node.ok and files.ok:
        yield from asyncio.run(_engine(make_engine))
        yield asyncio.run(_machine_code(installation))


def _node() -> Finding:
    try:
        node = node_executable()
        done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (EngineUnavailable, OSError, subprocess.SubprocessError) as error:
        return Finding("Node.js", False, f"{error}; run `pip install 'lean-reward[lean]'`")
    version = done.stdout.strip()
    return Finding("Node.js", True, f"{version} ({node})", facts={"version": version, "path": str(node)})


def _files(installation: Installation) -> Finding:
    faults = quick_faults(installation, LEAN)
    begin = time.monotonic()
    if not faults:
        faults = deep_faults(installation)
    seconds = time.monotonic() - begin
    manifest = read_manifest(installation.manifest)
    facts: dict[str, object] = {"root": str(installation.root), "faults": faults}
    if manifest is not None:
        facts["manifest"] = manifest.model_dump()
    if faults or manifest is None:
        detail = f"{'; '.join(faults)} ({installation.root}); run `lean-reward lean install`"
        return Finding("package", False, detail, seconds, facts)
    detail = f"{LEAN.spec}, {manifest.library.files} modules, every hash right ({installation.root})"
    return Finding("package", True, detail, seconds, facts)


def _snapshots(folder: Path) -> Finding:
    files = sorted(folder.glob("*.img"))
    total = sum(path.stat().st_size for path in files)
    detail = f"{len(files)} files of {total / 1e6:.0f} MB" if files else "none yet: the first start builds one"
    return Finding("snapshots", True, detail, facts={"files": {path.name: path.stat().st_size for path in files}})


async def _machine_code(installation: Installation) -> Finding:
    try:
        host = await HostProcess.start(installation, _MEMORY_MB)
    except EngineUnavailable as error:
        return Finding("machine code", False, str(error))
    await host.kill()
    advice = "none that this process can use: engines are slow at first; run `lean-reward lean install`"
    detail = "a new process starts with it" if host.warm else advice
    return Finding("machine code", True, detail, facts={"trained": host.warm})


async def _engine(make_engine: Callable[[], Engine]) -> list[Finding]:
    findings: list[Finding] = []
    try:
        engine = make_engine()
    except EngineUnavailable as error:
        return [Finding("start", False, str(error))]
    try:
        seconds = await _timed(engine.start())
        toolchain = engine.identity.toolchain
        identity = engine.identity.model_dump()
        findings.append(Finding("start", True, f"Lean {toolchain}", seconds, {"identity": identity}))
        findings.append(Finding("open Init", True, "header warm", await _timed(engine.open(""))))
        for name, code, expected in _SPECIMENS:
            findings.append(await _specimen(engine, name, code, expected))
        findings.append(await _rate(engine))
    except (EngineUnavailable, HeaderError) as error:
        findings.append(Finding("engine", False, str(error)))
    finally:
        await engine.stop()
    return findings


async def _specimen(engine: Engine, name: str, code: str, expected: Verdict) -> Finding:
    task = CheckTask(code=code, statement=_STATEMENT)
    begin = time.monotonic()
    outcome = judge(task, await engine.check(task))
    seconds = time.monotonic() - begin
    detail = f"{outcome.verdict} ({outcome.reason})"
    right = outcome.verdict is expected
    return Finding(f"check of {name}", right, detail if right else f"{detail}, expected {expected}", seconds)


async def _rate(engine: Engine) -> Finding:
    _, code, _ = _SPECIMENS[0]
    seconds = [await _timed(engine.check(CheckTask(code=code, statement=_STATEMENT))) for _ in range(_REPEATS)]
    median, worst, rss = statistics.median(seconds), max(seconds), engine.rss_bytes
    times = f"{median * 1000:.0f} ms median, {worst * 1000:.0f} ms worst of {_REPEATS}"
    detail = f"{times}; {rss / 1e6:.0f} MB resident"
    facts: dict[str, object] = {"median_s": median, "worst_s": worst, "rss_bytes": rss}
    return Finding("speed", True, detail, sum(seconds), facts)


async def _timed(work: Awaitable[object]) -> float:
    begin = time.monotonic()
    await work
    return time.monotonic() - begin
