"""A model together with what it is trained to do."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gpu_evaluator.training.tuning.batches import Batch

_CHUNK = 4_096  # predictions whose logits over the whole vocabulary are held at once


class Learner(nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
    """`forward` gives the summed cross-entropy of a batch's predictions, and how many of them the model ranks first."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> tuple[Any, Any]:
        return _sums(self.model(**batch.inputs).logits.flatten(0, -2)[batch.where], batch.targets)


class CausalLearner(Learner):
    """Logits only where something is learned, and never all at once: 32,768 of them over 151,936 tokens are 20 GB."""

    def forward(self, batch: Batch) -> tuple[Any, Any]:
        hidden = self.model.base_model(**batch.inputs, use_cache=False).last_hidden_state[0][batch.where]
        loss = hidden.new_zeros((), dtype=torch.float32)
        right = torch.zeros((), dtype=torch.int64, device=hidden.device)
        for part, targets in zip(hidden.split(_CHUNK), batch.targets.split(_CHUNK), strict=True):
            part_loss, part_right = checkpoint(self._predict, part, targets, use_reentrant=False)
            loss, right = loss + part_loss, right + part_right
        return loss, right

    def _predict(self, hidden: Any, targets: Any) -> tuple[Any, Any]:
        return _sums(self.model.get_output_embeddings()(hidden), targets)


def _sums(logits: Any, targets: Any) -> tuple[Any, Any]:
    loss = nn.functional.cross_entropy(logits.float(), targets, reduction="sum")
    return loss, (logits.argmax(-1) == targets).sum()
