"""Examples and documents as token sequences: raw text, no chat template (learning-lean-feedback, Appendix B)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gpu_evaluator.engines.transformers.inputs import read_labels, read_programs
from gpu_evaluator.training.corpus import Example
from gpu_evaluator.training.records import RecordError
from gpu_evaluator.training.tuning.packing import windows
from gpu_evaluator.training.tuning.recipe import Objective


class Tokens(NamedTuple):
    """Tokens, of which those from `learned_from` on are learned; `label` is an encoder's class."""

    tokens: list[int]
    learned_from: int
    label: int = 0


class Sequencer:
    """Makes the sequences of one objective. What does not fit is counted in `left_out`.

    Raises `EngineFault` when the labels of the one-token model are not one token each, `RecordError` when the
    tokenizer lacks what the objective needs.
    """

    def __init__(self, tokenizer: Any, objective: Objective, length: int, left_out: Counter[str]) -> None:
        self._tokenizer = tokenizer
        self._objective = objective
        self._length = length
        self._left_out = left_out
        self._labels = read_labels(tokenizer) if objective == "gate" else (0, 0)
        if objective in ("next_token", "feedback") and tokenizer.eos_token_id is None:
            raise RecordError("the tokenizer has no end-of-text token")
        if objective == "masked_token" and None in (
            tokenizer.mask_token_id,
            tokenizer.cls_token_id,
            tokenizer.sep_token_id,
        ):
            raise RecordError("the tokenizer lacks a token for a mask, or for the begin or the end of a text")

    def of_examples(self, examples: Sequence[Example]) -> Iterator[Tokens | None]:
        """Yield the sequence of each example, or None where it does not fit."""
        programs = [example.program for example in examples]
        if self._objective == "feedback":
            traces = [example.trace or "" for example in examples]
            yield from map(self._annotated, self._raw(programs), self._raw(traces))
            return
        is_encoder = self._objective == "encoder"
        context = self._length if is_encoder else self._length - 1  # the label comes after the program
        for example, tokens in zip(
            examples, read_programs(self._tokenizer, programs, context, is_encoder=is_encoder), strict=True
        ):
            if is_encoder:
                yield Tokens(tokens, len(tokens), int(example.valid))
            else:
                yield Tokens([*tokens, self._labels[0 if example.valid else 1]], len(tokens), int(example.valid))

    def of_documents(self, texts: Sequence[str]) -> Iterator[Tokens]:
        """Yield documents in parts that fit; a document for next-token prediction ends with the end-of-text token."""
        if self._objective == "next_token":
            for tokens in self._raw(texts):
                whole = [*tokens, self._tokenizer.eos_token_id]
                yield from (Tokens(whole[start:end], 1) for start, end in windows(len(whole), self._length))
            return
        for tokens in self._raw(texts):
            for start, end in windows(len(tokens), self._length - 2):
                yield Tokens([self._tokenizer.cls_token_id, *tokens[start:end], self._tokenizer.sep_token_id], 1)

    def _annotated(self, program: list[int], trace: list[int]) -> Tokens | None:
        """The program, then its trace and the end-of-text token; only these two are learned."""
        tokens = [*program, *trace, self._tokenizer.eos_token_id]
        if len(tokens) > self._length:
            self._left_out["too_long"] += 1
            return None
        return Tokens(tokens, len(program))

    def _raw(self, texts: Sequence[str]) -> list[list[int]]:
        tokens: list[list[int]] = self._tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
        return tokens
