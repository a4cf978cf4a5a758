"""Token sequences on disk: written once, then read in any order without being held in memory.

A folder: `tokens.u32`, every sequence after the other; `index.npy`, a row for each; `meta.json`, written last, so that
a folder without it is not finished.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOKENS, _INDEX, _META = "tokens.u32", "index.npy", "meta.json"


class TokenWriter:
    """Writes a folder anew."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder
        self._file = (folder / _TOKENS).open("wb")
        self._rows: list[tuple[int, int, int, int]] = []
        self._end = 0

    def add(self, tokens: Sequence[int], *, learned_from: int, label: int = 0) -> None:
        """A sequence. Its tokens from `learned_from` on are what the model learns to write; `label`: its class."""
        np.asarray(tokens, dtype=np.uint32).tofile(self._file)
        self._rows.append((self._end, len(tokens), learned_from, label))
        self._end += len(tokens)

    def close(self, meta: dict[str, Any]) -> None:
        self._file.close()
        np.save(self._folder / _INDEX, np.array(self._rows, dtype=np.int64).reshape(-1, 4))
        part = self._folder / f"{_META}.part"
        part.write_text(json.dumps(meta), encoding="utf-8")
        part.replace(self._folder / _META)


class TokenStore:
    """Reads a finished folder. `lengths`, `learned_from` and `labels` have an entry for each sequence."""

    def __init__(self, folder: Path) -> None:
        index: NDArray[np.int64] = np.load(folder / _INDEX)
        self._starts, self.lengths, self.learned_from, self.labels = index.T.copy()
        path = folder / _TOKENS
        self._tokens = np.memmap(path, np.uint32, "r") if path.stat().st_size else np.zeros(0, np.uint32)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: int) -> NDArray[np.int64]:
        start = self._starts[number]
        return self._tokens[start : start + self.lengths[number]].astype(np.int64)


def read_meta(folder: Path) -> dict[str, Any] | None:
    """What the writer said at its close; None for a folder that is not finished."""
    try:
        meta: dict[str, Any] = json.loads((folder / _META).read_bytes())
    except (OSError, ValueError):
        return None
    return meta
