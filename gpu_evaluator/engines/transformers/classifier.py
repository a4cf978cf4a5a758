"""A model folder as a classifier of programs. Needs torch and transformers (extra `evaluator-transformers`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpu_evaluator.engines.base import EngineFault
from gpu_evaluator.engines.transformers.inputs import ENCODER_CONTEXT, read_labels, read_programs

VALID = 1  # the class of a sequence classifier with two of them


class Classifier:
    """P(valid) of programs (learning-lean-feedback, Section 4.1).

    A causal model is the one-token classifier: the probabilities of `true` and `false` after the program, normalised.
    A sequence classifier (ModernBERT) keeps the first 2,048 and the last 6,144 tokens of longer programs.

    Raises `EngineFault` when the folder holds no such model.
    """

    def __init__(self, folder: Path, *, context: int, batch_tokens: int) -> None:
        import torch
        import transformers

        self._torch = torch
        self._batch_tokens = batch_tokens
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            config = transformers.AutoConfig.from_pretrained(folder)
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            names = " ".join(config.architectures or ())
            self._is_encoder = "SequenceClassification" in names
            kind = "AutoModelForSequenceClassification" if self._is_encoder else "AutoModelForCausalLM"
            kept = torch.bfloat16 if self._device == "cuda" else torch.float32
            self._model = getattr(transformers, kind).from_pretrained(folder, dtype=kept).to(self._device).eval()
        except (OSError, ValueError, KeyError) as error:
            raise EngineFault(f"{folder} holds no model: {error}") from error
        positions = int(config.max_position_embeddings)
        self._context = min(ENCODER_CONTEXT if self._is_encoder else context, positions)
        self._labels = (0, 0) if self._is_encoder else read_labels(self._tokenizer)

    def score(self, programs: Sequence[str]) -> list[float]:
        """P(valid) of each program, in their order. Raises `EngineFault`."""
        if not programs:
            return []
        tokens = read_programs(self._tokenizer, programs, self._context, is_encoder=self._is_encoder)
        scores = [0.0] * len(programs)
        try:
            with self._torch.inference_mode():
                for batch in self._batches(tokens):
                    for index, score in zip(batch, self._forward([tokens[n] for n in batch]), strict=True):
                        scores[index] = score
        except RuntimeError as error:  # out of memory, or a lost device
            raise EngineFault(f"the forward pass failed: {error}") from error
        return scores

    def _batches(self, tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Indices of programs alike in length, whose padded batch has at most `batch_tokens` tokens."""
        batch: list[int] = []
        for index in sorted(range(len(tokens)), key=lambda n: len(tokens[n]), reverse=True):
            if batch and len(tokens[batch[0]]) * (len(batch) + 1) > self._batch_tokens:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def _forward(self, tokens: Sequence[Sequence[int]]) -> list[float]:
        torch, longest = self._torch, max(map(len, tokens))
        padding = self._tokenizer.pad_token_id or 0
        # Padded on the left, so that the last position of each is its last token; an encoder reads from the right one.
        pads = [[padding] * (longest - len(row)) for row in tokens]
        masks = [[0] * len(pad) + [1] * len(row) for pad, row in zip(pads, tokens, strict=True)]
        rows = [[*pad, *row] for pad, row in zip(pads, tokens, strict=True)]
        if self._is_encoder:
            rows = [[*row, *pad] for pad, row in zip(pads, tokens, strict=True)]
            masks = [mask[::-1] for mask in masks]
        inputs: dict[str, Any] = {
            "input_ids": torch.tensor(rows, device=self._device),
            "attention_mask": torch.tensor(masks, device=self._device),
        }
        if self._is_encoder:
            logits = self._model(**inputs).logits.float()
            chances = logits.sigmoid()[:, 0] if logits.shape[1] == 1 else logits.softmax(-1)[:, VALID]
            return [float(chance) for chance in chances.cpu()]
        inputs["position_ids"] = (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
        logits = self._model(**inputs, logits_to_keep=1, use_cache=False).logits[:, -1].float()
        true, false = (logits[:, label] for label in self._labels)
        return [float(chance) for chance in (true - false).sigmoid().cpu()]
