"""One training, step by step. The same recipe and data give the same weights, with or without an interruption."""

from __future__ import annotations

import json
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gpu_evaluator.training.tuning.batches import Batch
from gpu_evaluator.training.tuning.checkpoints import Checkpoints
from gpu_evaluator.training.tuning.plan import Plan, Turn
from gpu_evaluator.training.tuning.processes import Processes
from gpu_evaluator.training.tuning.recipe import Recipe
from gpu_evaluator.training.tuning.schedule import rate_at


class TrainingError(Exception):
    """The training cannot go on; the message says why."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """One optimizer step. `loss` and `accuracy` are means over what is learned; `norm` is the whole gradient's."""

    step: int
    loss: float
    accuracy: float
    rate: float
    norm: float
    tokens: int


class Loop:
    """`make_batch(step, turn)` gives the tensors of one forward pass."""

    def __init__(
        self, learner: Any, plan: Plan, recipe: Recipe, processes: Processes, make_batch: Callable[[int, Turn], Batch]
    ) -> None:
        self._learner = learner
        self._plan = plan
        self._recipe = recipe
        self._processes = processes
        self._make_batch = make_batch
        self.optimizer = torch.optim.AdamW(
            learner.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )

    def train(
        self, done: int, checkpoints: Checkpoints, log: Path, every: int, report: Callable[[StepReport], None]
    ) -> bool:
        """Go on after `done` steps to the end, with a checkpoint every so many steps.

        False: SIGINT or SIGTERM came, a checkpoint was saved, and the same call goes on later. Raises `TrainingError`.
        """
        reports = _Log(log, done) if self._processes.leads else None
        with _stop_signal() as stop:
            for step in range(done, self._plan.steps):
                step_report = self._step(step)
                if reports is not None:
                    reports.add(step_report)
                    report(step_report)
                stopped = self._processes.any(stop.is_set())
                if stopped or ((step + 1) % every == 0 and step + 1 < self._plan.steps):
                    checkpoints.save(self._learner, self.optimizer, step + 1)
                if stopped:
                    return False
        return True

    def measure(self, plan: Plan, make_batch: Callable[[int, Turn], Batch]) -> tuple[float, float]:
        """Mean loss and accuracy over another plan, of which nothing is learned."""
        self._learner.eval()
        loss, right, weight = 0.0, 0.0, 0
        with torch.no_grad():
            for step in range(plan.steps):
                for turn in plan.turns(step, self._processes.rank, self._processes.count):
                    turn_loss, turn_right = self._forward(make_batch(step, turn))
                    loss += float(turn_loss) * turn.counts
                    right += float(turn_right) * turn.counts
                weight += plan.weight(step)
        self._learner.train()
        loss, right = self._processes.sum([loss, right])
        return loss / weight, right / weight

    def _step(self, step: int) -> StepReport:
        recipe, processes = self._recipe, self._processes
        torch.manual_seed(hash((recipe.seed, step, processes.rank)))
        rate = rate_at(step, self._plan.steps, recipe.warmup, recipe.learning_rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        weight = self._plan.weight(step)
        loss, right = 0.0, 0.0
        for turn in self._plan.turns(step, processes.rank, processes.count):
            turn_loss, turn_right = self._forward(self._make_batch(step, turn))
            # Sharded gradients are averaged over the processes; their sum is wanted.
            (turn_loss * (turn.counts * processes.count / weight)).backward()
            loss += float(turn_loss.detach()) * turn.counts
            right += float(turn_right) * turn.counts
        norm = torch.nn.utils.clip_grad_norm_(self._learner.parameters(), recipe.clip)
        norm = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        loss, right = processes.sum([loss, right])
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise TrainingError(f"step {step}: the loss is {loss}, the gradient's norm {norm}")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return StepReport(step, loss / weight, right / weight, rate, norm, self._plan.tokens(step))

    def _forward(self, batch: Batch) -> tuple[Any, Any]:
        device = self._processes.device
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=self._recipe.precision == "bf16"):
            loss, right = self._learner(batch.to(device))
        return loss, right


class _Log:
    """A JSON object a step. What an interrupted run wrote after its last checkpoint is written again."""

    def __init__(self, path: Path, done: int) -> None:
        kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:done] if done and path.exists() else []
        path.write_text("".join(kept), encoding="utf-8")
        self._path = path

    def add(self, report: StepReport) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(report)) + "\n")


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """Set by SIGINT or SIGTERM, which then do nothing else."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
