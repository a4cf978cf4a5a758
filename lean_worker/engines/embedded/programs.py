"""Whether the programs that are about to run, and the library that they import, are the ones that were installed.

A changed byte in them can start, load every snapshot, and answer wrongly: so no host starts, and no snapshot is built,
from anything but the pinned bytes. It takes a tenth of a second, a twentieth of a start; about a second for the
library, which only those who build a snapshot read.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from lean_worker.engines.base import EngineUnavailable
from lean_worker.engines.embedded import patch
from lean_worker.engines.embedded.layout import Installation
from lean_worker.engines.embedded.manifest import file_record, library_record


async def require_unchanged(installation: Installation) -> None:
    """Raises `EngineUnavailable`: `lean.wasm` or `lean.js` is not what was installed, or cannot be read."""
    pinned = {installation.wasm: patch.PATCHED_SHA256, installation.js: patch.TRIMMED_JS_SHA256}
    for path, sha256 in pinned.items():
        try:
            found = await asyncio.to_thread(file_record, path)
        except OSError as error:
            raise EngineUnavailable(f"cannot read {path}: {error.strerror}") from error
        if found.sha256 != sha256:
            raise _changed(path)


async def require_library_unchanged(installation: Installation) -> None:
    """Raises `EngineUnavailable`: a compiled module was changed, added or taken away, or cannot be read."""
    try:
        found = await asyncio.to_thread(library_record, installation.library)
    except OSError as error:
        raise EngineUnavailable(f"cannot read {error.filename}: {error.strerror}") from error
    if found.sha256 != patch.LIBRARY_SHA256:
        raise _changed(installation.library)


def _changed(path: Path) -> EngineUnavailable:
    return EngineUnavailable(f"{path} has been changed since it was installed: run `lean-reward lean install --force`")
