"""What a model is given and what it learns from, on tiny real models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_evaluator.training.tuning.data import Data, build
from gpu_evaluator.training.tuning.plan import Plan
from gpu_evaluator.training.tuning.recipe import Recipe, make_recipe
from tests.gpu_evaluator import tiny_modernbert
from tests.gpu_evaluator.tiny_qwen3 import END, FALSE, TRUE, encode
from tests.gpu_evaluator.training.tuning.tiny import label, labels, write_lines


def prepare(base: Path, file: Path, folder: Path, recipe: Recipe) -> tuple[Data, Any]:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    build(folder / "data", "source", [file], tokenizer, recipe, folder / "held_out.jsonl", lambda texts: None)
    return Data(folder / "data"), tokenizer


def test_the_feedback_model_learns_the_response_only(qwen3: Path, some_labels: Path, tmp_path: Path) -> None:
    recipe = make_recipe("feedback", learning_rate=1.0, length=1024)
    data, _ = prepare(qwen3, some_labels, tmp_path, recipe)
    from gpu_evaluator.training.tuning.batches import packed

    batch = packed(data.train, [0, 3])
    lines = [labels(2)[0], labels(2)[3]]
    tokens = batch.inputs["input_ids"][0].tolist()
    assert tokens == [t for line in lines for t in [*encode(line["code"]), *encode(line["trace"]), END]]
    assert batch.targets.tolist() == [t for line in lines for t in [*encode(line["trace"]), END]]
    assert [tokens[place + 1] for place in batch.where] == batch.targets.tolist()
    lengths = [len(encode(line["code"] + line["trace"])) + 1 for line in lines]
    assert batch.inputs["position_ids"][0].tolist() == [n for length in lengths for n in range(length)]
    assert data.facts["programs"] == 20
    assert data.facts["toolchain"] == "4.15.0"


def test_the_gate_learns_one_label_token_after_both_ends_of_a_program(qwen3: Path, tmp_path: Path) -> None:
    line = label(1, valid=False)
    line["code"] = "".join(f"-- {n}\n" for n in range(100)) + line["code"]
    file = write_lines(tmp_path / "labels.jsonl", [line, label(2, valid=True)])
    data, _ = prepare(qwen3, file, tmp_path, make_recipe("gate", learning_rate=1.0, length=257))
    from gpu_evaluator.training.tuning.batches import packed

    program = encode(line["code"])
    assert data.train[0].tolist() == [*program[:64], *program[-192:], FALSE]
    batch = packed(data.train, [0, 1])
    assert batch.targets.tolist() == [FALSE, TRUE]
    assert batch.where.tolist() == [255, 256 + len(encode(label(2, valid=True)["code"]))]


def test_in_a_pack_each_example_is_predicted_as_if_it_were_alone(
    qwen3: Path, some_labels: Path, tmp_path: Path
) -> None:
    import torch
    import transformers

    recipe = make_recipe("feedback", learning_rate=1.0, length=1024)
    data, _ = prepare(qwen3, some_labels, tmp_path, recipe)
    from gpu_evaluator.training.tuning.batches import packed
    from gpu_evaluator.training.tuning.objective import CausalLearner

    for attention in ("sdpa", "eager"):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            qwen3, dtype=torch.float32, attn_implementation=attention
        )
        learner = CausalLearner(model)
        with torch.no_grad():
            together = float(learner(packed(data.train, [4, 0, 9]))[0])
            alone = sum(float(learner(packed(data.train, [n]))[0]) for n in (4, 0, 9))
            spilled = packed(data.train, [4, 0, 9])
            spilled.inputs["position_ids"] = torch.arange(spilled.inputs["input_ids"].shape[1])[None]
            one_text = float(learner(spilled)[0])
        assert together == pytest.approx(alone, rel=1e-5)
        assert one_text != pytest.approx(alone, rel=1e-4)  # the comparison can fail


def test_an_encoder_reads_both_ends_and_has_a_class(modernbert: Path, tmp_path: Path) -> None:
    line = label(1, valid=True)
    line["code"] = "".join(f"-- {n}\n" for n in range(100)) + line["code"]
    file = write_lines(tmp_path / "labels.jsonl", [line, label(2, valid=False)])
    data, _ = prepare(modernbert, file, tmp_path, make_recipe("encoder", learning_rate=1.0, length=128))
    from gpu_evaluator.training.tuning.batches import classified

    batch = classified(data.train, [1, 0], tiny_modernbert.PAD)
    assert batch.targets.tolist() == [0, 1]
    short, long = batch.inputs["input_ids"].tolist()
    assert len(long) == 128
    assert (long[0], long[-1]) == (tiny_modernbert.CLS, tiny_modernbert.SEP)
    seen = batch.inputs["attention_mask"].sum(1).tolist()
    assert seen[0] < 128 == seen[1]
    assert short[seen[0] :] == [tiny_modernbert.PAD] * (128 - seen[0])


def test_30_percent_are_guessed_and_the_ends_of_a_text_never(modernbert: Path, tmp_path: Path) -> None:
    source = tmp_path / "A.lean"
    source.write_text("theorem t : 1 = 1 := rfl\n" * 100)
    recipe = make_recipe("masked_token", length=256)
    data, tokenizer = prepare(modernbert, source, tmp_path, recipe)
    from gpu_evaluator.training.tuning.batches import masked

    plan = Plan(data.train, recipe)
    assert plan.weights[0] == round(0.3 * 254)
    options = {"padding": tiny_modernbert.PAD, "mask": tiny_modernbert.MASK, "vocabulary": len(tokenizer)}
    numbers = list(range(len(data.train)))
    weights = [int(weight) for weight in plan.weights]
    batch = masked(data.train, numbers, weights, recipe, 3, **options)
    tokens, true = batch.inputs["input_ids"].flatten().numpy(), batch.targets.numpy()
    original = np.concatenate([np.pad(data.train[n], (0, 256 - len(data.train[n]))) for n in numbers])
    where = batch.where.numpy()
    assert (original[where] == true).all()
    assert len(set(where.tolist())) == sum(weights)
    assert not {tiny_modernbert.CLS, tiny_modernbert.SEP} & set(true.tolist())
    changed = tokens[where]
    assert 0.7 < (changed == tiny_modernbert.MASK).mean() < 0.9
    assert 0.03 < (changed == true).mean() < 0.2
    again = masked(data.train, numbers[:1], weights[:1], recipe, 3, **options)
    assert (again.inputs["input_ids"][0] == batch.inputs["input_ids"][0]).all()
    later = masked(data.train, numbers[:1], weights[:1], recipe, 4, **options)
    assert (later.inputs["input_ids"][0] != batch.inputs["input_ids"][0]).any()


def test_documents_are_cut_into_parts_that_end_with_the_end_of_text(qwen3: Path, tmp_path: Path) -> None:
    source = tmp_path / "A.lean"
    source.write_text("x" * 250)
    data, _ = prepare(qwen3, source, tmp_path, make_recipe("next_token", length=100))
    assert [len(data.train[n]) for n in range(len(data.train))] == [100, 100, 51]
    assert data.train[2].tolist()[-2:] == [*encode("x"), END]
    assert Plan(data.train, make_recipe("next_token", length=100)).weights.tolist() == [99, 99, 50]


def test_held_out_problems_are_written_as_labels(qwen3: Path, some_labels: Path, tmp_path: Path) -> None:
    from gpu_evaluator.training.corpus import read_examples

    recipe = make_recipe("gate", learning_rate=1.0, length=256, held_out=0.4)
    data, _ = prepare(qwen3, some_labels, tmp_path, recipe)
    kept_out = list(read_examples([tmp_path / "held_out.jsonl"]))
    assert 0 < len(kept_out) == len(data.held_out) == 20 - len(data.train) < 20
    assert len({example.problem for example in kept_out}) * 2 == len(kept_out)
    assert data.facts["programs"] == len(data.train)


def test_an_example_that_does_not_fit_is_counted(qwen3: Path, tmp_path: Path) -> None:
    long = label(1, valid=True)
    long["trace"] += "-- x" * 100
    file = write_lines(tmp_path / "labels.jsonl", [long, label(2, valid=True)])
    data, _ = prepare(qwen3, file, tmp_path, make_recipe("feedback", learning_rate=1.0, length=300))
    assert len(data.train) == data.facts["programs"] == 1
    assert data.facts["left_out"] == {"too_long": 1}
