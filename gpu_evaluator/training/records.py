"""Files of programs and of labels: JSON lines, appended to, and read again after an interruption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.contracts.outcomes import Reason, Verdict

_Model = TypeVar("_Model", bound=BaseModel)


class RecordError(Exception):
    """A file cannot be used; the message names the line."""


class ProgramRecord(BaseModel):
    """A line of the input. Other members of the line are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str | None = None
    group: str | None = Field(default=None, description="The problem; default: the statement, else the program itself.")
    code: str
    statement: str | None = None
    header: str | None = None
    benchmark: str | None = Field(default=None, description="Where the problem is from; carried over to the label.")
    prover: str | None = Field(default=None, description="Whose attempt it is; carried over likewise.")

    @property
    def key(self) -> str:
        """The id, or a hash of everything that the label depends on."""
        if self.id is not None:
            return self.id
        parts = json.dumps([self.code, self.statement, self.header]).encode()
        return hashlib.sha256(parts).hexdigest()[:24]


class LabelRecord(BaseModel):
    """A program with Lean's verdict and the reference trace.

    `program` is the text that was labelled where `code` differs from it: a model is asked about that, and answers with
    a trace of `code`.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    group: str
    code: str = Field(description="The program as it was executed, see `feedback.trace.prepare_source`.")
    program: str | None = None
    verdict: Verdict
    reason: Reason
    trace: str
    toolchain: str
    elapsed_s: float
    benchmark: str | None = None
    prover: str | None = None


def read_programs(path: Path) -> Iterator[ProgramRecord]:
    """Yield the programs of a file. Raises `RecordError`."""
    seen: dict[str, int] = {}
    for number, record in read_lines(ProgramRecord, path):
        if (first := seen.setdefault(record.key, number)) != number:
            raise RecordError(f"{path}, line {number}: the id of line {first} again")
        yield record


def read_labels(path: Path) -> Iterator[LabelRecord]:
    """Yield the labels of a file. Raises `RecordError`."""
    for _, record in read_lines(LabelRecord, path):
        yield record


def read_lines(model: type[_Model], path: Path) -> Iterator[tuple[int, _Model]]:
    """Yield (number, record) of each line that is not blank. Raises `RecordError`."""
    for number, line in _lines(path):
        yield number, _parse(model, path, number, line)


class LabelFile:
    """Labels and, beside them, what was excluded and why; opened again, it goes on where it ended."""

    def __init__(self, path: Path) -> None:
        excluded = path.with_name(f"{path.name}.excluded")
        self.done = _finished(path) | _finished(excluded)
        try:
            self._labels = path.open("a", encoding="utf-8")
            self._excluded = excluded.open("a", encoding="utf-8")
        except OSError as error:
            raise RecordError(f"{path}: {error.strerror}") from error

    def add(self, label: LabelRecord) -> None:
        self._labels.write(label.model_dump_json() + "\n")
        self._labels.flush()

    def exclude(self, key: str, reason: str) -> None:
        """For good: an interrupted run does not try it again."""
        self._excluded.write(json.dumps({"id": key, "reason": reason}) + "\n")
        self._excluded.flush()

    def close(self) -> None:
        self._labels.close()
        self._excluded.close()


def _finished(path: Path) -> set[str]:
    """Ids that a file has; a last line that was cut off by a crash is removed."""
    if not path.exists():
        return set()
    whole = path.read_bytes()
    end = whole.rfind(b"\n") + 1
    if end != len(whole):
        with path.open("r+b") as file:
            file.truncate(end)
    try:
        return {json.loads(line)["id"] for line in whole[:end].splitlines() if line.strip()}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RecordError(f"{path} holds something else than labels: {error}") from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: {error}") from error


def _parse(model: type[_Model], path: Path, number: int, line: str) -> _Model:
    try:
        return model.model_validate(json.loads(line))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the line"
        raise RecordError(f"{path}, line {number}: {place}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}, line {number}: no JSON: {error}") from None
