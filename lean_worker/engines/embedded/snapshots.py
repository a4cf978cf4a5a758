"""Memory images of an initialised Lean, one for each list of imports, shared by every engine of the machine."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from lean_worker.engines.base import EngineUnavailable, HeaderError
from lean_worker.engines.embedded.identity import HOST, environment_hash
from lean_worker.engines.embedded.layout import Installation, node_executable
from lean_worker.engines.embedded.programs import require_library_unchanged, require_unchanged

_MODULE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_BUILD_TIMEOUT_S = 120.0
_LOCK_POLL_S = 0.05
_BUILD_MEMORY_MB = 2048
_KEPT = 12  # images in the folder; 175 MB (Init) to 350 MB (Lean) each


def require_modules(installation: Installation, imports: Sequence[str]) -> None:
    """Raise `HeaderError` for the first import that the package does not have."""
    for module in imports:
        path = installation.library / (module.replace(".", "/") + ".olean")
        if not _MODULE.fullmatch(module) or not path.is_file():
            raise HeaderError(f"unknown import `{module}`: the embedded Lean has Init, Std, Lean and Lake only")


def snapshot_path(installation: Installation, imports: Sequence[str]) -> Path:
    """The file of an environment; its name covers everything that the image depends on."""
    key = hashlib.sha256("\0".join([environment_hash(), *imports]).encode()).hexdigest()[:24]
    return installation.snapshots / f"{imports[-1]}-{key}.img"


async def ensure_snapshot(installation: Installation, imports: Sequence[str]) -> Path:
    """The snapshot of an environment, built first where it is missing (a few seconds).

    Engines that want the same one wait for a single builder; the file appears whole or not at all.

    Raises:
        HeaderError: an import is unknown.
        EngineUnavailable: the snapshot cannot be built.
    """
    require_modules(installation, imports)
    path = snapshot_path(installation, imports)
    if path.is_file():
        _mark_used(path)
        return path
    async with locked(path):
        if not path.is_file():
            _drop_leftovers(path)
            await _build(installation, imports, path)
            _drop_oldest(installation.snapshots, path)
    return path


async def discard_snapshot(path: Path) -> None:
    """Remove a damaged snapshot, so that the next `ensure_snapshot` builds it again."""
    async with locked(path):
        _remove(path)


@contextlib.asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """Alone with a file, among all processes; its folder is made. Raises `EngineUnavailable`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise EngineUnavailable(f"cannot write to {path.parent}: {error}") from error
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(lock)


async def _build(installation: Installation, imports: Sequence[str], path: Path) -> None:
    await require_unchanged(installation)
    await require_library_unchanged(installation)
    options = {
        "js": str(installation.js),
        "wasm": str(installation.wasm),
        "library": str(installation.library),
        "imports": list(imports),
        "snapshot": str(path),
        "memoryMb": _BUILD_MEMORY_MB,
    }
    process = await asyncio.create_subprocess_exec(
        node_executable(),
        HOST / "build.js",
        json.dumps(options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={},
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), _BUILD_TIMEOUT_S)
    except asyncio.TimeoutError:
        raise EngineUnavailable(f"building the snapshot of {', '.join(imports)} took too long") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        detail = errors.decode(errors="replace").strip()[-500:]
        raise EngineUnavailable(f"cannot build the snapshot of {', '.join(imports)}: {detail}")


def _mark_used(path: Path) -> None:
    """For `_drop_oldest`, by the access time alone: a host takes another time of change for another file.

    Where the folder is only read, or another user's, nobody drops anything.
    """
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _drop_leftovers(path: Path) -> None:
    """Parts of builders that were killed; the caller holds the lock, so no builder of this snapshot is alive."""
    for leftover in path.parent.glob(f"{path.name}.*.tmp"):
        _remove(leftover)


def _drop_oldest(folder: Path, newest: Path) -> None:
    """Keep the folder bounded: candidates' headers choose what is imported."""
    images = sorted(folder.glob("*.img"), key=lambda path: path.stat().st_atime, reverse=True)
    for path in images[_KEPT:]:
        if path != newest:
            _remove(path)
