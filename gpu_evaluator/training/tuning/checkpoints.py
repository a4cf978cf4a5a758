"""Weights, the optimizer's state and the step, on disk: whole or not at all."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)

from gpu_evaluator.training.tuning.processes import Processes

_NAME = re.compile(r"step-(\d+)")


class Checkpoints:
    """The checkpoints of one training; only the last is kept. Any number of processes can read it again."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        self._folder = folder
        self._processes = processes

    def save(self, learner: Any, optimizer: Any, step: int) -> None:
        """`step` steps are done."""
        weights, state = get_state_dict(learner, optimizer)
        part = self._folder / "part"
        if self._processes.leads:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
        self._processes.wait()
        with _quiet():
            checkpoint.save({"weights": weights, "optimizer": state}, checkpoint_id=part)
        if self._processes.leads:
            older = self._found()
            part.rename(self._folder / f"step-{step}")
            for path in older.values():
                shutil.rmtree(path)
        self._processes.wait()

    def restore(self, learner: Any, optimizer: Any) -> int:
        """Load the last checkpoint, if there is one; the number of steps that are done."""
        found = self._found()
        if not found:
            return 0
        step = max(found)
        weights, state = get_state_dict(learner, optimizer)
        both = {"weights": weights, "optimizer": state}
        with _quiet():
            checkpoint.load(both, checkpoint_id=found[step])
        set_state_dict(learner, optimizer, model_state_dict=both["weights"], optim_state_dict=both["optimizer"])
        return step

    def _found(self) -> dict[int, Path]:
        if not self._folder.is_dir():
            return {}
        return {int(m[1]): path for path in self._folder.iterdir() if (m := _NAME.fullmatch(path.name))}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's warning that a process which is alone is alone."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def save_model(learner: Any, folder: Path, processes: Processes, *, halved: bool) -> None:
    """Write the model as transformers does, in bfloat16 if `halved`."""
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = {
        name.removeprefix("model."): tensor for name, tensor in get_model_state_dict(learner, options=options).items()
    }
    if not processes.leads:
        return
    model = learner.model
    if halved:
        same: dict[int, Any] = {}  # tensors that the model shares stay shared
        weights = {
            name: same.setdefault(tensor.data_ptr(), tensor.to(torch.bfloat16))
            if tensor.is_floating_point()
            else tensor
            for name, tensor in weights.items()
        }
        model.config.dtype = torch.bfloat16
    model.save_pretrained(folder, state_dict=weights)
