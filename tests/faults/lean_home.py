"""A copy of the installed embedded Lean that a test may damage."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lean_worker.engines.embedded.layout import Installation


def copied(installed: Installation, root: Path) -> Installation:
    """Its programs and its library, without snapshots. A file of the library is to be `parted` before it is damaged."""
    root.mkdir(parents=True)
    copy = Installation(root)
    for path in (installed.wasm, installed.js, installed.manifest):
        shutil.copy(path, root / path.name)
    share_library(installed, copy)
    return copy


def share_library(installed: Installation, copy: Installation) -> None:
    """Hard links to the compiled modules, if possible: Emscripten's view of a folder follows no other links."""
    shutil.copytree(installed.library, copy.library, copy_function=link_or_copy)


def parted(path: Path) -> Path:
    """The same file with bytes of its own."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    return path


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def flip(path: Path, at: float) -> None:
    """Invert a byte: `at` is its place as a part of the file's length."""
    place = int(path.stat().st_size * at)
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 0xFF]))
