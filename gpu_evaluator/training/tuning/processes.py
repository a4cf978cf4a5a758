"""The processes that train together: one, or those that `torchrun` started, over which the weights are sharded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from gpu_evaluator.training.tuning.recipe import Precision

_LONGEST_WAIT = timedelta(hours=12)  # the first process tokenizes the data while the others wait


@dataclass(frozen=True, slots=True)
class Processes:
    rank: int
    count: int
    device: Any

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def wait(self) -> None:
        """Until every process is here."""
        if self.count > 1:
            distributed.barrier()

    def any(self, value: bool) -> bool:
        """Whether it is true in any process."""
        return self.sum([float(value)])[0] > 0

    def sum(self, values: list[float]) -> list[float]:
        """Each value, summed over the processes."""
        if self.count == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        return [float(value) for value in total.tolist()]


def join() -> Processes:
    """This process among those of `torchrun`, or alone."""
    has_gpu = torch.cuda.is_available()
    if "WORLD_SIZE" not in os.environ:
        return Processes(0, 1, torch.device("cuda" if has_gpu else "cpu"))
    if has_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if has_gpu else "gloo", timeout=_LONGEST_WAIT)
    device = torch.device("cuda", torch.cuda.current_device()) if has_gpu else torch.device("cpu")
    return Processes(distributed.get_rank(), distributed.get_world_size(), device)


def leave(processes: Processes) -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def shard(learner: Any, layers: list[Any], processes: Processes, precision: Precision) -> None:
    """Spread weights, gradients and the optimizer's state of `learner` over the processes, layer by layer."""
    if processes.count == 1:
        return
    kept = torch.bfloat16 if precision == "bf16" else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=kept, reduce_dtype=torch.float32)
    for layer in layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(learner, mp_policy=policy)
