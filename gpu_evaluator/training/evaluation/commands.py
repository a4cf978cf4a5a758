"""`lean-reward evaluate`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from services.contracts.evaluator import EvaluationMethod

if TYPE_CHECKING:
    from gpu_evaluator.training.evaluation.asking import Answers, Ask
    from gpu_evaluator.training.evaluation.programs import Judged, Labels, PredictionLine
    from services.contracts.evaluation import EvaluationReport, Throughput
    from services.contracts.evaluator import Prediction
    from services.runtime.settings import Settings

_WIDTH_WITHOUT_TERMINAL = 160


def evaluate(
    labels: list[Path] = typer.Argument(help="Labelled programs: JSON lines of `label` or `label export`, or Parquet."),
    predictions: list[Path] = typer.Option([], "--predictions", "-p", help="Answers of /v1/evaluate, found by id."),
    url: str = typer.Option(None, "--url", help="Ask this evaluator or gateway."),
    engine: str = typer.Option(None, "--engine", help="Ask this engine, with its settings."),
    method: EvaluationMethod = typer.Option(
        None, "--method", help="gate, cascade or self_consistency; default: the evaluator's."
    ),
    against: Path = typer.Option(None, "--against", help="Predictions of another evaluator, to compare with."),
    validation: list[Path] = typer.Option([], "--validation", help="Labelled programs that select thresholds."),
    prevalence: list[float] = typer.Option([], "--prevalence", min=0, max=1, help="Give the precision at this one."),
    save: Path = typer.Option(None, "--save", help="Write the answers of an evaluator that was asked here."),
    plot: Path = typer.Option(None, "--plot", help="Draw ROC and budget curves into this PNG or SVG."),
    name: str = typer.Option(None, "--name", help="The evaluator's name in tables."),
    resamples: int = typer.Option(5_000, "--resamples", min=1, help="Resamples of the bootstrap."),
    seed: int = typer.Option(42, "--seed", min=0, help="Its seed."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object, which `report` reads."),
) -> None:
    """Measure how well an evaluator predicts Lean, on programs that Lean has labelled.

    The predictions come from --predictions, or from --url or --engine, else from the labels themselves (an export has
    them), else from the engine of the settings. Exit status: 0 measured, 1 measured without programs on which the
    evaluator failed, 2 it cannot be measured.
    """
    from gpu_evaluator.training.evaluation.asking import AskError
    from gpu_evaluator.training.evaluation.programs import pair, read_labels, read_predictions
    from gpu_evaluator.training.evaluation.study import Options, measure
    from gpu_evaluator.training.records import RecordError
    from services.contracts.outcomes import Reason
    from services.runtime.settings import SettingsError, load_settings

    try:
        _check_plot(plot)
        _check_source(predictions, url, engine, method, save)
        _check_folders(plot, save)
        _check_save(save, [*labels, *validation, *([against] if against else [])])
        given: dict[str, Any] = {"evaluator": {"engine": engine}} if engine else {}
        source = _Source(load_settings(**given), predictions, url, engine, method, save)
        parts = [read_labels(labels)] + ([read_labels(validation)] if validation else [])
        judged, left_out, throughput = source.judge(parts)
        test, other = judged[0], None
        if against is not None:
            test, accepted = pair(test, read_predictions([against]), left_out)
            if judged[0] and not test:
                raise ValueError(f"--against: {against} has no verdict on any of the programs")
            other = (against.stem, accepted)
        if validation and not judged[1]:
            raise ValueError("no validation program has a prediction")
        study = measure(
            test,
            judged[1] if validation else (),
            Options(resamples, seed, tuple(prevalence)),
            evaluator=name or source.name or parts[0].model or "evaluator",
            toolchain=parts[0].toolchain,
            left_out=left_out,
            throughput=throughput,
            against=other,
        )
        if plot is not None:
            from gpu_evaluator.training.evaluation.plots import plot as draw

            draw(study, plot)
    except (SettingsError, RecordError, AskError, ValueError, OSError) as error:
        typer.echo(f"lean-reward evaluate: {error}", err=True)
        raise typer.Exit(2) from None
    if validation:
        _warn_of_shared_problems(judged)
    if as_json:
        typer.echo(study.report.model_dump_json())
    else:
        _print(study.report)
    raise typer.Exit(1 if left_out[Reason.INFRASTRUCTURE.value] else 0)


class _Source:
    """Where predictions come from. `name`: of the evaluator, where it is known from here."""

    def __init__(
        self,
        settings: Settings,
        predictions: Sequence[Path],
        url: str | None,
        engine: str | None,
        method: EvaluationMethod | None,
        save: Path | None,
    ) -> None:
        self._settings, self._files, self._url, self._engine = settings, predictions, url, engine
        self._method, self._save = method, save
        self.name: str | None = url or engine

    def judge(self, parts: Sequence[Labels]) -> tuple[list[list[Judged]], Counter[str], Throughput | None]:
        """The programs of each part with both verdicts, those left out, and the time that asking took."""
        from gpu_evaluator.training.evaluation.programs import join, join_places, read_predictions

        left_out: Counter[str] = Counter()
        counts = [left_out if number == 0 else Counter[str]() for number in range(len(parts))]
        throughput = None
        if self._files:
            by_id = read_predictions(self._files)
            judged = [join(part, by_id, count) for part, count in zip(parts, counts, strict=True)]
        else:
            by_place = [part.predictions for part in parts]
            if self._url or self._engine or not any(by_place):
                by_place, throughput = self._ask(parts)
            else:
                self._check_brought(by_place)
            judged = [join_places(*each) for each in zip(parts, by_place, counts, strict=True)]
        for count in counts[1:]:
            left_out.update({f"validation: {reason}": number for reason, number in count.items()})
        return judged, left_out, throughput

    def _check_brought(self, by_place: Sequence[Mapping[int, PredictionLine]]) -> None:
        """Nobody is asked where labels bring predictions: those of another evaluator would stand beside them."""
        if not all(by_place):
            lacking = "validation" if by_place[0] else "test"
            raise ValueError(f"the {lacking} programs have no predictions, the others do; give -p, --url or --engine")
        options = {"--method": self._method, "--save": self._save}
        if given := [option for option, value in options.items() if value is not None]:
            raise ValueError(
                f"the labels bring their predictions: leave {' and '.join(given)} out, or give --url or --engine"
            )

    def _ask(self, parts: Sequence[Labels]) -> tuple[list[dict[int, PredictionLine]], Throughput]:
        from gpu_evaluator.training.evaluation.programs import PredictionLine
        from services.contracts.evaluation import Throughput
        from services.runtime.logging import configure_logging

        configure_logging(self._settings.log, service="evaluate")
        if self._save is not None:
            _check_ids(parts)
        places = [(number, place) for number, part in enumerate(parts) for place in range(len(part.programs))]
        names = {(number, place): f"{number}.{place}" for number, place in places}
        programs = {name: parts[number].programs[place].program for (number, place), name in names.items()}
        if self.name is None:
            self.name = self._settings.evaluator.engine
        known_as = {name: parts[number].programs[place].id for (number, place), name in names.items()}
        with _saving(self._save, known_as) as keep:
            answers = asyncio.run(_ask(self._asked(), programs, self._method, keep))
        found = {prediction.id: prediction for prediction in answers.predictions}
        by_place: list[dict[int, PredictionLine]] = [{} for _ in parts]
        for (number, place), name in names.items():
            by_place[number][place] = PredictionLine.model_validate(found[name].model_dump())
        rate = len(programs) / answers.seconds if answers.seconds > 0 else 0.0
        return by_place, Throughput(programs=len(programs), seconds=answers.seconds, programs_per_s=rate)

    def _asked(self) -> AbstractAsyncContextManager[Ask]:
        from gpu_evaluator.training.evaluation.asking import at_url, in_this_process

        if self._url is None:
            return in_this_process(self._settings)
        key = self._settings.client.key
        return at_url(self._url, key.get_secret_value() if key else None, self._settings.evaluator.silence_s)


async def _ask(
    asked: AbstractAsyncContextManager[Ask],
    programs: dict[str, str],
    method: EvaluationMethod | None,
    keep: Callable[[Prediction], None],
) -> Answers:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from gpu_evaluator.training.evaluation.asking import ask_all

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("predicting", total=len(programs))

        def heard(prediction: Prediction, done: int) -> None:
            keep(prediction)
            bar.update(task, completed=done)

        async with asked as ask:
            return await ask_all(ask, programs, method, heard)


@contextmanager
def _saving(path: Path | None, known_as: Mapping[str, str | None]) -> Iterator[Callable[[Prediction], None]]:
    """Keeps every answer under the id of its program, as it comes: an interrupted run has what it heard.

    The file begins with the first answer, so that an earlier one outlives an evaluator that is not there.
    """
    from gpu_evaluator.training.evaluation.programs import is_news

    with ExitStack() as stack:
        file: TextIO | None = None

        def keep(prediction: Prediction) -> None:
            nonlocal file
            if path is None or is_news(prediction):
                return
            if file is None:
                file = stack.enter_context(path.open("w", encoding="utf-8", buffering=1))
            file.write(prediction.model_copy(update={"id": known_as[prediction.id]}).model_dump_json() + "\n")

        yield keep


def _check_plot(plot: Path | None) -> None:
    """Before anything is asked: a plot that cannot be drawn is no surprise for the end."""
    from importlib.util import find_spec

    if plot is None:
        return
    if plot.suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"--plot: {plot} ends in neither .png nor .svg")
    if find_spec("matplotlib") is None:
        raise ValueError("--plot needs an extra: pip install 'lean-reward[studies]'")


def _check_source(
    predictions: Sequence[Path], url: str | None, engine: str | None, method: EvaluationMethod | None, save: Path | None
) -> None:
    """Answers that are there already are of whoever gave them: nobody is asked, and no name is put on them."""
    asking = {"--url": url, "--engine": engine, "--method": method, "--save": save}
    given = [option for option, value in asking.items() if value is not None]
    if predictions and given:
        raise ValueError(f"--predictions are not asked for: leave {' and '.join(given)} out")
    if url and engine:
        raise ValueError("--url and --engine: one of them")


def _check_folders(*files: Path | None) -> None:
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise ValueError(f"{file}: there is no folder {file.parent}")


def _check_save(save: Path | None, inputs: Sequence[Path]) -> None:
    if save is None:
        return
    if save.suffix == ".parquet":
        raise ValueError(f"--save: {save} would be read as Parquet, and JSON lines are written")
    if save.resolve() in [path.resolve() for path in inputs]:
        raise ValueError(f"--save: {save} is read here, and would be lost")


def _check_ids(parts: Sequence[Labels]) -> None:
    """Saved answers are found again by id."""
    ids = [program.id for part in parts for program in part.programs]
    if None in ids:
        raise ValueError("--save: a labelled program has no id, and its answer could not be found again")
    if twice := [name for name, count in Counter(ids).items() if count > 1]:
        raise ValueError(f"--save: the id {twice[0]!r} is of a test and of a validation program")


def _warn_of_shared_problems(judged: Sequence[Sequence[Judged]]) -> None:
    test, validation = ({(j.label.benchmark, j.label.problem) for j in part} for part in judged)
    if shared := len(test & validation):
        typer.echo(f"warning: {shared} problems are in the test and in the validation programs", err=True)


def _print(report: EvaluationReport) -> None:
    from rich.console import Console

    from gpu_evaluator.training.evaluation.tables import tables

    console = Console() if Console().is_terminal else Console(width=_WIDTH_WITHOUT_TERMINAL)
    for table in tables(report):
        console.print(table)
    if report.throughput is not None:
        done = report.throughput
        console.print(f"{done.programs} programs in {done.seconds:.1f} s, {done.programs_per_s:.2f} a second")
    if report.left_out:
        console.print("left out: " + ", ".join(f"{count} {reason}" for reason, count in report.left_out.items()))
