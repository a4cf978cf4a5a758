"""A copy of the installed embedded Lean that a test may damage."""

from __future__ import annotations

import shutil
from pathlib import Path

from lean_worker.engines.embedded.layout import Installation


def copied(installed: Installation, root: Path) -> Installation:
    """Its programs and what `Init` needs, without snapshots."""
    root.mkdir(parents=True)
    copy = Installation(root)
    for path in (installed.wasm, installed.js, installed.manifest):
        shutil.copy(path, root / path.name)
    shutil.copytree(installed.library / "Init", copy.library / "Init")
    shutil.copy(installed.library / "Init.olean", copy.library)
    return copy


def flip(path: Path, at: float) -> None:
    """Invert a byte: `at` is its place as a part of the file's length."""
    place = int(path.stat().st_size * at)
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 0xFF]))
