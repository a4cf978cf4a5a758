"""What a training reads, tokenized once into a folder, and used again when the training goes on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from gpu_evaluator.training.corpus import Chosen, Example, choose, is_held_out, read_examples
from gpu_evaluator.training.records import RecordError
from gpu_evaluator.training.tuning.documents import read_documents
from gpu_evaluator.training.tuning.recipe import Recipe
from gpu_evaluator.training.tuning.sequences import Sequencer
from gpu_evaluator.training.tuning.store import TokenStore, TokenWriter, read_meta

_Item = TypeVar("_Item")

_TRAINED, _HELD_OUT = "train", "held_out"
_AT_ONCE = 512  # texts that are tokenized in one call, on all cores


class Data:
    """A finished folder. `facts`: `toolchain`, `programs`, `valid`, `left_out`, `tokens` of what is trained on."""

    def __init__(self, folder: Path) -> None:
        facts = read_meta(folder / _TRAINED)
        if facts is None:
            raise RecordError(f"{folder} is not finished")
        self.facts = facts
        self.train = TokenStore(folder / _TRAINED)
        self.held_out = TokenStore(folder / _HELD_OUT)


def fingerprint(files: Sequence[Path], tokenizer: Any, recipe: Recipe) -> str:
    """Of everything that the token sequences depend on. Raises `RecordError`."""
    digest = hashlib.sha256()
    settings = [recipe.objective, recipe.length, recipe.held_out, recipe.seed]
    digest.update(json.dumps(settings).encode())
    digest.update(tokenizer.backend_tokenizer.to_str().encode())
    for file in files:
        try:
            with file.open("rb") as opened:
                while piece := opened.read(2**20):
                    digest.update(piece)
        except OSError as error:
            raise RecordError(f"{file}: {error.strerror}") from error
        digest.update(b"\0")
    return digest.hexdigest()


def build(
    folder: Path,
    source: str,
    files: Sequence[Path],
    tokenizer: Any,
    recipe: Recipe,
    lines: Path,
    report: Callable[[int], None],
) -> None:
    """Tokenize into `folder`, unless it holds the same already; `report` is told how many texts are done.

    `source` is their `fingerprint`. Labelled programs that are held out are also written to `lines`, as labels.
    Raises `RecordError`, `EngineFault`.
    """
    meta = read_meta(folder / _TRAINED)
    if meta is not None and meta["source"] == source:
        return
    train, held_out = TokenWriter(folder / _TRAINED), TokenWriter(folder / _HELD_OUT)
    facts: dict[str, Any] = {"source": source, "toolchain": None, "programs": 0, "valid": 0, "left_out": {}}
    if recipe.objective in ("next_token", "masked_token"):
        sequencer = Sequencer(tokenizer, recipe.objective, recipe.length, Counter())
        _add_documents(train, held_out, files, sequencer, recipe, report)
    else:
        facts |= _add_examples(train, held_out, files, tokenizer, recipe, lines, report)
    held_out.close({})
    train.close(facts)  # last: it makes the folder a finished one


def _add_documents(
    train: TokenWriter,
    held_out: TokenWriter,
    files: Sequence[Path],
    sequencer: Sequencer,
    recipe: Recipe,
    report: Callable[[int], None],
) -> None:
    done = 0
    for texts in _several(read_documents(files)):
        for kept, writer in ((True, train), (False, held_out)):
            chosen = [text for text in texts if is_held_out(text, recipe.held_out, recipe.seed) is not kept]
            for sequence in sequencer.of_documents(chosen) if chosen else ():
                writer.add(sequence.tokens, learned_from=sequence.learned_from)
        done += len(texts)
        report(done)


def _add_examples(
    train: TokenWriter,
    held_out: TokenWriter,
    files: Sequence[Path],
    tokenizer: Any,
    recipe: Recipe,
    lines: Path,
    report: Callable[[int], None],
) -> dict[str, Any]:
    chosen = Chosen()
    sequencer = Sequencer(tokenizer, recipe.objective, recipe.length, chosen.left_out)
    toolchain, programs, valid, done = None, 0, 0, 0
    with lines.open("w", encoding="utf-8") as kept_lines:
        for examples in _several(choose(read_examples(files), chosen, traces=recipe.objective == "feedback")):
            for example, sequence in zip(examples, sequencer.of_examples(examples), strict=True):
                if sequence is None:
                    continue
                kept_out = is_held_out(example.problem, recipe.held_out, recipe.seed)
                writer = held_out if kept_out else train
                writer.add(sequence.tokens, learned_from=sequence.learned_from, label=sequence.label)
                toolchain = example.toolchain
                if kept_out:
                    kept_lines.write(_line(example) + "\n")
                else:
                    programs += 1
                    valid += example.valid
            done += len(examples)
            report(done)
    return {"toolchain": toolchain, "programs": programs, "valid": valid, "left_out": dict(chosen.left_out)}


def _line(example: Example) -> str:
    """As `lean-reward label` writes it, as far as a reader of labels needs it."""
    verdict = "valid" if example.valid else "invalid"
    line = {"group": example.problem, "code": example.program, "verdict": verdict, "trace": example.trace}
    return json.dumps({**line, "toolchain": example.toolchain})


def _several(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    iterator = iter(items)
    while some := list(islice(iterator, _AT_ONCE)):
        yield some
