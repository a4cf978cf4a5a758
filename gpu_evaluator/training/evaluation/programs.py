"""Labelled programs and what an evaluator said of them, read from JSON lines or Parquet, and joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpu_evaluator.training.records import RecordError, read_lines
from services.contracts.evaluator import Prediction
from services.contracts.outcomes import Reason, Verdict

_Model = TypeVar("_Model", bound=BaseModel)

PARQUET = ".parquet"


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class LabelLine(_Line):
    """A line of `lean-reward label` or of `lean-reward label export`; the latter carries a prediction."""

    id: str | None = None
    code: str
    program: str | None = None
    group: str | None = None
    statement: str | None = None
    benchmark: str | None = None
    problems: str | None = None
    prover: str | None = None
    verdict: Verdict
    trace: str | None = None
    toolchain: str | None = None
    predicted: Verdict | None = None
    gate: float | None = Field(default=None, ge=0, le=1)
    model: str | None = None


class PredictionLine(_Line):
    """A line of the answer of `POST /v1/evaluate`.

    `score`, which that route does not write, ranks programs for the AUROC of the evaluator as a whole: the fraction of
    valid votes of self-consistency, or the score of another classifier.
    """

    id: str
    verdict: Verdict
    reason: Reason | None = None
    gate: float | None = Field(default=None, ge=0, le=1)
    feedback: Verdict | None = None
    trace: str | None = None
    score: float | None = Field(default=None, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A program and Lean's verdict. A model is asked about `program`; `trace`, Lean's annotation, copies `code`."""

    id: str | None
    program: str
    code: str
    problem: str
    benchmark: str
    prover: str
    valid: bool
    trace: str | None
    toolchain: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled program and its prediction."""

    label: Labelled
    accepted: bool
    gate: float | None
    feedback: bool | None
    score: float | None
    trace: str | None


@dataclass(frozen=True, slots=True)
class Labels:
    """The usable lines of some files, and the predictions that stood on them (by place), as an export's do."""

    programs: list[Labelled]
    predictions: dict[int, PredictionLine]
    model: str | None

    @property
    def toolchain(self) -> str | None:
        """The Lean that gave the labels, where it is one."""
        found = {program.toolchain for program in self.programs}
        return found.pop() if len(found) == 1 else None


def read_labels(paths: Iterable[Path]) -> Labels:
    """Read labelled programs. Raises `RecordError`: a file, a line without a verdict, an id or a file twice."""
    labels = Labels([], {}, None)
    models: set[str] = set()
    ids: set[str] = set()
    places: set[Path] = set()
    for path in paths:
        if path.resolve() in places:
            raise RecordError(f"{path} is given twice")
        places.add(path.resolve())
        for number, line in read_rows(LabelLine, path):
            if line.verdict is Verdict.UNKNOWN:
                raise RecordError(f"{path}, line {number}: no verdict")
            if line.id is not None and line.id in ids:
                raise RecordError(f"{path}, line {number}: the id {line.id!r} again")
            if line.id is not None:
                ids.add(line.id)
            if line.predicted is not None:
                name = line.id or str(len(labels.programs))
                said = PredictionLine(id=name, verdict=line.predicted, gate=line.gate)
                labels.predictions[len(labels.programs)] = said
            if line.model is not None:
                models.add(line.model)
            labels.programs.append(_labelled(line))
    if not labels.programs:
        raise RecordError(f"no labelled program in {', '.join(map(str, paths)) or 'no file'}")
    return Labels(labels.programs, labels.predictions, " and ".join(sorted(models)) or None)


def read_predictions(paths: Iterable[Path]) -> dict[str, PredictionLine]:
    """Predictions by id; news that a program passed the gate is no prediction. Raises `RecordError`."""
    found: dict[str, PredictionLine] = {}
    for path in paths:
        for number, line in read_rows(PredictionLine, path):
            if is_news(line):
                continue
            if line.id in found:
                raise RecordError(f"{path}, line {number}: a second prediction for {line.id!r}")
            found[line.id] = line
    return found


def is_news(line: PredictionLine | Prediction) -> bool:
    """It only says that the program passed the gate and waits for the feedback model."""
    return line.verdict is Verdict.UNKNOWN and line.reason is Reason.NOT_DECIDED and line.gate is not None


def join(labels: Labels, predictions: Mapping[str, PredictionLine], left_out: Counter[str]) -> list[Judged]:
    """Programs with both verdicts, in the order of the labels; the others are counted by why they are left out.

    Raises `RecordError` where a label has no id to be found by.
    """
    if any(label.id is None for label in labels.programs):
        raise RecordError("a labelled program has no id, and predictions are found by it")
    return _join(labels.programs, [predictions.get(label.id or "") for label in labels.programs], left_out)


def join_places(labels: Labels, predictions: Mapping[int, PredictionLine], left_out: Counter[str]) -> list[Judged]:
    """The same with predictions by the place of the program, as an export's own are."""
    return _join(labels.programs, [predictions.get(place) for place in range(len(labels.programs))], left_out)


def pair(
    judged: Sequence[Judged], predictions: Mapping[str, PredictionLine], left_out: Counter[str]
) -> tuple[list[Judged], list[bool]]:
    """The programs that another evaluator has judged too, and whether it accepts each. The others are counted.

    Raises `RecordError` where a label has no id to be found by.
    """
    kept: list[Judged] = []
    accepted: list[bool] = []
    for one in judged:
        if one.label.id is None:
            raise RecordError("a labelled program has no id, and predictions are found by it")
        other = predictions.get(one.label.id)
        if other is None or other.verdict is Verdict.UNKNOWN:
            left_out["not_judged_by_both"] += 1
        else:
            kept.append(one)
            accepted.append(other.verdict is Verdict.VALID)
    return kept, accepted


def read_rows(model: type[_Model], path: Path) -> Iterator[tuple[int, _Model]]:
    """Yield (number, row) of a file of JSON lines or, by its suffix, of Parquet. Raises `RecordError`."""
    if path.suffix == PARQUET:
        yield from _read_parquet(model, path)
    else:
        yield from read_lines(model, path)


def _read_parquet(model: type[_Model], path: Path) -> Iterator[tuple[int, _Model]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise RecordError(f"{path}: Parquet needs an extra: pip install 'lean-reward[studies]'") from None
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            wanted = [name for name in file.schema_arrow.names if name in model.model_fields]
            for batch in file.iter_batches(batch_size=1_024, columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    yield number, model.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the row"
        raise RecordError(f"{path}, row {number}: {place}: {first['msg']}") from None
    except (OSError, pyarrow.ArrowException) as error:
        raise RecordError(f"{path}: {error}") from error


def _labelled(line: LabelLine) -> Labelled:
    return Labelled(
        id=line.id,
        program=line.program or line.code,
        code=line.code,
        problem=line.group or line.statement or line.code,
        benchmark=line.benchmark or line.problems or "all",
        prover=line.prover or "all",
        valid=line.verdict is Verdict.VALID,
        trace=line.trace,
        toolchain=line.toolchain,
    )


def _join(
    labels: Sequence[Labelled], predictions: Sequence[PredictionLine | None], left_out: Counter[str]
) -> list[Judged]:
    judged = []
    for label, said in zip(labels, predictions, strict=True):
        if said is None:
            left_out["no_prediction"] += 1
        elif said.verdict is Verdict.UNKNOWN:
            left_out[said.reason.value if said.reason else "unknown"] += 1
        else:
            feedback = None if said.feedback in (None, Verdict.UNKNOWN) else said.feedback is Verdict.VALID
            judged.append(Judged(label, said.verdict is Verdict.VALID, said.gate, feedback, said.score, said.trace))
    return judged
