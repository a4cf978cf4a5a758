"""The progress bar of a training, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from gpu_evaluator.training.tuning.loop import StepReport


class Bar:
    """A context manager; not `shown`, it shows nothing."""

    def __init__(self, *, shown: bool) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), disable=not shown)
        self._task = self._bar.add_task("reading", total=None)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tokenized(self, texts: int) -> None:
        self._bar.update(self._task, description="tokenizing", completed=texts)

    def begins(self, done: int, steps: int) -> None:
        self._bar.reset(self._task, description="training", completed=done, total=steps)

    def step(self, report: StepReport) -> None:
        text = f"training, loss {report.loss:.4f}, rate {report.rate:.2e}"
        self._bar.update(self._task, description=text, completed=report.step + 1)
