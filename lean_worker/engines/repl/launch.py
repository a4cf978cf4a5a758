"""How the REPL of a project is started: found, given Lake's environment, and confined."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from lean_worker.engines.base import EngineUnavailable
from lean_worker.sandbox import Confined, Confinement, Limits, SandboxUnavailable, Tier, choose, confine
from services.runtime.settings import ReplSettings

_MIB = 1 << 20
_LAKE_PATIENCE_S = 60.0
# What a Lean program needs of Lake's environment; credentials and everything else stay outside.
_PASSED_ON = ("LEAN_PATH", "LEAN_SRC_PATH", "LEAN_SYSROOT", "LD_LIBRARY_PATH")
_FOLDERS = ("LEAN_PATH", "LEAN_SYSROOT", "LD_LIBRARY_PATH")
WHOLE_LIFE_CPU_S = 24 * 3600  # the kernel's limit for one process; it is replaced long before


@dataclass(frozen=True, slots=True)
class Launcher:
    """Everything that is needed to start REPL processes of one project, again and again."""

    executable: Path
    project: Path
    toolchain: str
    environment_hash: str
    tier: Tier
    environment: dict[str, str]
    read_only: tuple[Path, ...]
    limits: Limits
    scratch_bytes: int

    def confined(self) -> Confined:
        """A fresh command to start one REPL process. Raises EngineUnavailable."""
        confinement = Confinement(
            self.limits, self.project, self.read_only, environment=self.environment, scratch_bytes=self.scratch_bytes
        )
        try:
            return confine(self.tier, [str(self.executable)], confinement)
        except SandboxUnavailable as error:
            raise EngineUnavailable(str(error)) from None


async def prepare(settings: ReplSettings) -> Launcher:
    """Find the project's REPL and the sandbox. Runs `lake env` once, which belongs to the operator and is trusted.

    Raises:
        EngineUnavailable: something is missing, or no sandbox works here and running without one was not asked for.
    """
    if settings.folder is None:
        raise EngineUnavailable("the repl engine needs LEAN_REWARD_REPL_FOLDER, the folder of a built Lean REPL")
    folder = settings.folder.resolve()
    project = (settings.project or folder).resolve()
    executable = folder / ".lake" / "build" / "bin" / "repl"
    for path, what in ((project, "project folder"), (executable, "built REPL")):
        if not path.exists():
            raise EngineUnavailable(f"there is no {what} at {path}")
    try:
        tier = await asyncio.to_thread(choose, settings.sandbox)
    except SandboxUnavailable as error:
        raise EngineUnavailable(str(error)) from None
    environment = await _lake_environment(settings.lake, project)
    folders = [Path(entry) for name in _FOLDERS for entry in environment.get(name, "").split(os.pathsep) if entry]
    read_only = tuple(path.resolve() for path in (folder, project, *folders, *settings.read_only) if path.exists())
    return Launcher(
        executable=executable,
        project=project,
        toolchain=settings.toolchain or _toolchain_file(project) or _toolchain_file(folder) or "unknown",
        environment_hash=_hash_environment(project, folder, environment),
        tier=tier,
        environment=environment,
        read_only=read_only,
        limits=Limits(
            memory_bytes=settings.memory_mb * _MIB,
            cpu_s=WHOLE_LIFE_CPU_S,
            file_bytes=settings.scratch_mb * _MIB,
        ),
        scratch_bytes=settings.scratch_mb * _MIB,
    )


async def _lake_environment(lake: str, project: Path) -> dict[str, str]:
    """`lake env` without a command prints the environment in which it would run one."""
    found = _find(lake)
    if found is None:
        raise EngineUnavailable(f"there is no `{lake}`; set LEAN_REWARD_REPL_LAKE to the toolchain's lake")
    process = await asyncio.create_subprocess_exec(
        found,
        "env",
        cwd=project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), _LAKE_PATIENCE_S)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        raise EngineUnavailable(f"`{lake} env` did not answer within {_LAKE_PATIENCE_S:.0f} s") from None
    if process.returncode != 0:
        raise EngineUnavailable(f"`{lake} env` failed: {errors.decode(errors='replace').strip()[-500:]}")
    variables = dict(
        line.split("=", 1) for line in output.decode(errors="replace").splitlines() if "=" in line and line[0] != "="
    )
    return {name: variables[name] for name in _PASSED_ON if variables.get(name)} | {"LANG": "C.UTF-8"}


def _find(lake: str) -> str | None:
    return shutil.which(os.path.abspath(lake) if os.sep in lake else lake)


def _toolchain_file(folder: Path) -> str | None:
    path = folder / "lean-toolchain"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def _hash_environment(project: Path, folder: Path, environment: dict[str, str]) -> str:
    """Changes when what can be imported changes: the project's pinned dependencies, its settings, the REPL's build."""
    digest = hashlib.sha256()
    for path in (
        project / "lake-manifest.json",
        project / "lakefile.toml",
        project / "lakefile.lean",
        folder / ".lake" / "build" / "bin" / "repl",
    ):
        digest.update(path.read_bytes() if path.is_file() else b"")
        digest.update(b"\0")
    digest.update(environment.get("LEAN_PATH", "").encode())
    return digest.hexdigest()
