"""What a report is made of: files of recorded runs, told apart by what is in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from reward_gateway.quality.records import LabelledProgram
from reward_gateway.studies.cohort import CohortError
from reward_gateway.studies.files import read_rows
from services.contracts.evaluation import EvaluationReport
from services.contracts.trajectories import TrajectoryScoreResponse

_KINDS = "a recording, `evaluate --json`, lines of `label export`, or answers of /v1/trajectories/score"


class SourceError(Exception):
    """A file cannot be used; the message names it and the line."""


@dataclass
class Sources:
    """Everything that was read, by kind. A run has the name of its file, with folders where two have the same."""

    evaluations: list[EvaluationReport] = field(default_factory=list)
    recordings: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    labels: dict[str, list[LabelledProgram]] = field(default_factory=dict)
    trajectories: dict[str, list[TrajectoryScoreResponse]] = field(default_factory=dict)


def read_sources(paths: Iterable[Path]) -> Sources:
    """Read files, and folders of recordings. Raises `SourceError`."""
    given = list(paths)
    places = [path.resolve() for path in given]
    for number, path in enumerate(given):
        if places[number] in places[:number]:
            raise SourceError(f"{path} is given twice")
    names = Counter(path.name for path in given)
    sources = Sources()
    for path in given:
        name = path.name if path.name and names[path.name] == 1 else str(path)
        if path.is_dir() or path.suffix == ".parquet":
            try:
                sources.recordings[name] = read_rows(path)
            except CohortError as error:
                raise SourceError(str(error)) from None
        else:
            _read_text(path, name, sources)
    return sources


def _read_text(path: Path, name: str, sources: Sources) -> None:
    """One JSON value, or one a line."""
    try:
        whole = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {error}") from None
    try:
        values = [(1, json.loads(whole))]
    except (ValueError, RecursionError):
        values = list(_lines(path, whole))
    items = [(number, item) for number, value in values for item in (value if isinstance(value, list) else [value])]
    if not items:
        raise SourceError(f"{path} is empty")
    for number, item in items:
        try:
            _sort(item, name, sources)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise SourceError(f"{path}, line {number}: {place}: {first['msg']}") from None
        except LookupError:
            raise SourceError(f"{path}, line {number}: none of {_KINDS}") from None


def _lines(path: Path, whole: str) -> Iterable[tuple[int, Any]]:
    for number, line in enumerate(whole.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise SourceError(f"{path}, line {number}: no JSON: {error}") from None


def _sort(item: Any, name: str, sources: Sources) -> None:
    """Add one value to its kind. Raises `LookupError` for a value of none, `ValidationError` for a broken one."""
    keys = item.keys() if isinstance(item, dict) else set()
    if {"verdicts", "resamples"} <= keys:
        sources.evaluations.append(EvaluationReport.model_validate(item))
    elif {"code", "verdict", "predicted"} <= keys:
        sources.labels.setdefault(name, []).append(LabelledProgram.model_validate(item))
    elif {"process_band", "rollouts"} <= keys:
        sources.trajectories.setdefault(name, []).append(TrajectoryScoreResponse.model_validate(item))
    else:
        raise LookupError
