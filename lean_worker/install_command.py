"""What `lean-reward lean install` prints: progress for a person, one JSON object for a script."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.catalog import embedded_engine
from lean_worker.engines.embedded.install import Fault, InstallError, Report, install
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.machine_code import ensure_machine_code, is_whole
from lean_worker.engines.embedded.snapshots import snapshot_path


class TerminalProgress:
    """The installer's stages as a live line with a bar; where standard error is no terminal, just their names."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bars.add_task("starting", total=None)

    def __enter__(self) -> TerminalProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def stage(self, name: str, total: int | None = None) -> None:
        self._bars.remove_task(self._task)
        self._task = self._bars.add_task(name, total=total)
        if not self._console.is_terminal:
            self._console.print(name, markup=False)

    def advance(self, amount: int = 0) -> None:
        self._bars.advance(self._task, amount)


def run(installation: Installation, brought: Path | None, force: bool, as_json: bool) -> int:
    """Install and say how it went; returns the exit status (0, or `Fault`'s value)."""
    signal.signal(signal.SIGTERM, _leave)
    console = Console()
    try:
        with TerminalProgress(quiet=as_json) as progress:
            report = install(installation, progress, brought=brought, force=force)
            start_s = training_s = cold = None
            if not snapshot_path(installation, ("Init",)).is_file():
                progress.stage("starting Lean for the first time")
                start_s = asyncio.run(_start(installation))
            if not is_whole(installation.machine_code):
                progress.stage("showing V8 what runs often")
                training_s, cold = asyncio.run(_train(installation, progress))
    except InstallError as error:
        if as_json:
            print(json.dumps({"error": error.fault.name.lower(), "message": str(error), "advice": error.advice}))
        else:
            Console(stderr=True).print(f"lean install: {error}\n{error.advice}", markup=False, highlight=False)
        return int(error.fault.value)
    except KeyboardInterrupt:
        print("lean install: interrupted; run it again and it goes on from there", file=sys.stderr)
        return 130
    if as_json:
        print(json.dumps({**summary(report, start_s, training_s), **({} if cold is None else {"cold": cold})}))
    else:
        package = f"{report.manifest.package}@{report.manifest.version}"
        took = f"installed in {sum(report.seconds.values()):.0f} s" if not report.already else "was installed already"
        first = "" if start_s is None else f", first start {start_s:.1f} s"
        training = "" if training_s is None else f", trained in {training_s:.0f} s"
        line = f"{package} {took}{first}{training}: {report.root}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
        if cold is not None:
            console.print(f"each engine will be slow at first: {cold}", markup=False, highlight=False, soft_wrap=True)
    return 0


def summary(report: Report, start_s: float | None, training_s: float | None) -> dict[str, object]:
    first = {"first_start": start_s, "training": training_s}
    return {
        "status": "already_installed" if report.already else "installed",
        "package": f"{report.manifest.package}@{report.manifest.version}",
        "root": str(report.root),
        "library_files": report.manifest.library.files,
        "seconds": {**report.seconds, **{name: round(took, 3) for name, took in first.items() if took is not None}},
    }


async def _start(installation: Installation) -> float:
    """Start the engine once, which builds its snapshot; returns the seconds that it took."""
    begin = time.monotonic()
    try:
        engine = embedded_engine(installation)
        try:
            await engine.start()
        finally:
            await engine.stop()
    except EngineUnavailable as error:
        advice = "Run `lean-reward lean doctor` for what works and what does not."
        raise InstallError(Fault.ENGINE, f"everything is in place, but Lean does not start: {error}", advice) from error
    return time.monotonic() - begin


async def _train(installation: Installation, progress: TerminalProgress) -> tuple[float | None, str | None]:
    """Have V8's machine code made; (seconds, None), or (None, why it is not there): Lean runs without it, too."""
    begin = time.monotonic()
    try:
        await ensure_machine_code(installation, progress.advance)
    except EngineUnavailable as error:
        return None, str(error)
    return time.monotonic() - begin, None


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
