"""Lean sources and documentation for continued pretraining: folders of them, files, or JSON lines with `text`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from gpu_evaluator.training.records import RecordError, read_lines

_SUFFIXES = (".lean", ".md")


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    text: str


def find_files(paths: Iterable[Path]) -> list[Path]:
    """The files themselves, and of folders all `.lean` and `.md` files below, in the order of their names.

    Hidden folders are left out (`.lake` has the sources of other packages, `.git` none). Raises `RecordError`.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            below = sorted(file for suffix in _SUFFIXES for file in path.rglob(f"*{suffix}"))
            visible = [f for f in below if not any(part.startswith(".") for part in f.relative_to(path).parts)]
            files += [file for file in visible if file.is_file()]
        elif path.is_file():
            files.append(path)
        else:
            raise RecordError(f"{path} is no file and no folder")
    if not files:
        raise RecordError(f"no {' or '.join(_SUFFIXES)} files there")
    return files


def read_documents(files: Iterable[Path]) -> Iterator[str]:
    """Yield the texts that are not blank. Raises `RecordError`."""
    for file in files:
        if file.suffix == ".jsonl":
            texts: Iterable[str] = (line.text for _, line in read_lines(_Line, file))
        else:
            texts = [_read(file)]
        for text in texts:
            if text.strip():
                yield text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{file}: {error}") from error
