"""Trainings of tiny random models on a CPU: they learn, they are exact, and the service loads what they write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_evaluator.card import read_card
from tests.gpu_evaluator.tiny_qwen3 import CONTEXT, END, FALSE, TRUE, encode
from tests.gpu_evaluator.training.tuning.tiny import labels, train, write_lines, write_qwen3

GATE: dict[str, Any] = {"length": 128, "batch": 3, "learning_rate": 5e-3}


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))


def same(one: Path, other: Path) -> bool:
    import torch

    ours, theirs = weights_of(one), weights_of(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


async def test_a_gate_learns_and_the_engine_scores_with_it(qwen3: Path, some_labels: Path, tmp_path: Path) -> None:
    import torch
    import transformers

    from gpu_evaluator.catalog import make_pairs
    from services.runtime.settings import load_settings

    summary = train(qwen3, [some_labels], tmp_path / "gate", "gate", epochs=16, **GATE)
    assert summary.finished
    assert (summary.programs, summary.valid, summary.toolchain) == (20, 10, "4.15.0")
    assert summary.loss_last < 0.1 * summary.loss_first

    settings = {"engine": "transformers", "gate": str(tmp_path / "gate"), "method": "gate", "gate_context": CONTEXT}
    (pair,) = make_pairs(load_settings(evaluator=settings))
    assert pair.gate.identity.toolchain == "4.15.0"
    await pair.gate.start()
    lines = labels(10)
    scores = {index: score async for index, score in pair.gate.score([line["code"] for line in lines])}
    await pair.gate.stop()
    assert all((scores[n] > 0.9) == (line["verdict"] == "valid") for n, line in enumerate(lines))
    assert all(score > 0.9 or score < 0.1 for score in scores.values())

    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gate", dtype=torch.float32)
    with torch.no_grad():
        chances = model(torch.tensor([encode(lines[0]["code"])])).logits[0, -1].softmax(-1)
    assert float(chances[TRUE] + chances[FALSE]) > 0.95  # it answers with a label, and with nothing else
    assert scores[0] == pytest.approx(float(chances[TRUE] / (chances[TRUE] + chances[FALSE])), abs=1e-4)


def test_a_feedback_model_learns_to_write_the_trace_and_to_end(qwen3: Path, tmp_path: Path) -> None:
    import torch
    import transformers

    lines = labels(2)
    file = write_lines(tmp_path / "labels.jsonl", lines)
    options = {"length": 400, "batch": 2, "epochs": 60, "learning_rate": 5e-3}
    summary = train(qwen3, [file], tmp_path / "feedback", "feedback", **options)
    assert summary.loss_last < 0.02 * summary.loss_first
    card = read_card(tmp_path / "feedback")
    assert card is not None
    assert (card.role, card.toolchain, card.programs, card.valid) == ("feedback", "4.15.0", 4, 2)
    assert card.libraries["transformers"] == transformers.__version__
    sampling = json.loads((tmp_path / "feedback" / "generation_config.json").read_text())
    assert sampling.keys() - {"transformers_version"} == {"eos_token_id"}
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "feedback", dtype=torch.float32)
    for line in lines:
        prompt = torch.tensor([encode(line["code"])])
        written = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=300, do_sample=False)
        assert written[0, prompt.shape[1] :].tolist() == [*encode(line["trace"]), END]


def test_an_encoder_learns_and_the_classifier_loads_it(modernbert: Path, some_labels: Path, tmp_path: Path) -> None:
    from gpu_evaluator.engines.transformers.classifier import Classifier

    options = {"length": 256, "batch": 10, "rows": 4, "epochs": 40, "learning_rate": 2e-3, "held_out": 0.2}
    summary = train(modernbert, [some_labels], tmp_path / "encoder", "encoder", **options)
    assert summary.loss_last < 0.1 * summary.loss_first
    assert summary.held_out_accuracy == 1.0
    assert summary.held_out_sequences == 20 - summary.programs > 0
    scores = Classifier(tmp_path / "encoder", context=CONTEXT, batch_tokens=4096).score(
        [line["code"] for line in labels(10)]
    )
    assert [score > 0.5 for score in scores] == [line["verdict"] == "valid" for line in labels(10)]
    card = read_card(tmp_path / "encoder")
    assert card is not None
    assert (card.role, card.toolchain) == ("encoder", "4.15.0")


def test_continued_pretraining_then_supervised_training(
    qwen3: Path, modernbert: Path, some_labels: Path, tmp_path: Path
) -> None:
    source = tmp_path / "A.lean"
    source.write_text("theorem t : 1 = 1 := rfl\n" * 40)
    options = {"length": 128, "batch": 4, "epochs": 8, "learning_rate": 3e-3, "warmup": 0.1}
    causal = train(qwen3, [source], tmp_path / "causal", "next_token", **options)
    assert causal.loss_last < 0.5 * causal.loss_first
    masked = train(modernbert, [source], tmp_path / "masked", "masked_token", **options)
    assert masked.loss_last < 0.9 * masked.loss_first
    card = read_card(tmp_path / "causal")
    assert card is not None
    assert (card.role, card.toolchain) == ("base", None)
    gate = train(tmp_path / "causal", [some_labels], tmp_path / "gate", "gate", **GATE)
    encoder = train(tmp_path / "masked", [some_labels], tmp_path / "encoder", "encoder", length=256, learning_rate=1e-4)
    assert gate.finished
    assert encoder.finished


def test_shared_embeddings_stay_shared_and_bfloat16_is_what_is_written(some_labels: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="run by `make test-train`")
    transformers = pytest.importorskip("transformers", reason="run by `make test-train`")
    from safetensors.torch import save_file

    base = write_qwen3(tmp_path / "base")
    tensors = weights_of(base)
    del tensors["lm_head.weight"]
    save_file(tensors, base / "model.safetensors", {"format": "pt"})
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    summary = train(base, [some_labels], tmp_path / "gate", "gate", epochs=8, **{**GATE, "precision": "bf16"})
    assert summary.loss_last < 0.5 * summary.loss_first
    written = weights_of(tmp_path / "gate")
    assert "lm_head.weight" not in written
    assert {tensor.dtype for tensor in written.values()} == {torch.bfloat16}
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gate")
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()


def test_gradients_of_several_packs_are_those_of_all_at_once(qwen3: Path, some_labels: Path, tmp_path: Path) -> None:
    """One step over many small packs is one step over one pack that holds them all."""
    import torch

    options = {"batch": 100, "learning_rate": 1e-2, "warmup": 0.0, "clip": 0.1}
    many = train(qwen3, [some_labels], tmp_path / "many", "feedback", length=350, **options)
    one = train(qwen3, [some_labels], tmp_path / "one", "feedback", length=16_384, **options)
    assert many.sequences > 5
    assert (many.steps, one.steps, one.sequences) == (1, 1, 1)
    assert many.loss_first == pytest.approx(one.loss_first, rel=1e-5)
    norms = [json.loads((tmp_path / name / "log.jsonl").read_text())["norm"] for name in ("many", "one")]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    ours, theirs = weights_of(tmp_path / "many"), weights_of(tmp_path / "one")
    # Adam's first step has the size of the rate whatever the gradient, so that only its sign could differ.
    assert all(torch.isclose(ours[n], theirs[n], atol=1e-3).float().mean() > 0.99 for n in ours)


@pytest.mark.parametrize("objective", ["gate", "masked_token"])
def test_an_interrupted_training_ends_with_the_same_weights(
    objective: str, qwen3: Path, modernbert: Path, some_labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpu_evaluator.training.tuning import loop

    source = tmp_path / "A.lean"
    source.write_text("theorem t : 1 = 1 := rfl\n" * 40)
    base, file = (qwen3, some_labels) if objective == "gate" else (modernbert, source)
    options: dict[str, Any] = {"length": 128, "batch": 2, "epochs": 3, "learning_rate": 3e-3}
    whole = train(base, [file], tmp_path / "whole", objective, **options)
    assert whole.steps > 6
    step = loop.Loop._step

    def fail_at_5(self: Any, number: int) -> Any:
        if number == 5:
            raise ConnectionError("the machine went down")
        return step(self, number)

    monkeypatch.setattr(loop.Loop, "_step", fail_at_5)
    with pytest.raises(ConnectionError):
        train(base, [file], tmp_path / "parts", objective, every=3, **options)
    monkeypatch.undo()
    assert read_card(tmp_path / "parts") is None
    assert [path.name for path in (tmp_path / "parts" / "work" / "checkpoints").iterdir()] == ["step-3"]
    again = train(base, [file], tmp_path / "parts", objective, every=3, **options)
    assert again == whole
    assert same(tmp_path / "whole", tmp_path / "parts")
    assert (tmp_path / "whole" / "log.jsonl").read_text() == (tmp_path / "parts" / "log.jsonl").read_text()
    assert not (tmp_path / "parts" / "work").exists()


def test_the_seed_decides(qwen3: Path, some_labels: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(qwen3, [some_labels], tmp_path / name, "gate", **GATE, seed=seed)
    assert same(tmp_path / "a", tmp_path / "b")
    assert not same(tmp_path / "a", tmp_path / "c")


def test_a_folder_of_another_training_is_left_alone(qwen3: Path, some_labels: Path, tmp_path: Path) -> None:
    from gpu_evaluator.training.tuning.loop import TrainingError

    train(qwen3, [some_labels], tmp_path / "gate", "gate", **GATE)
    with pytest.raises(TrainingError, match="holds a trained model already"):
        train(qwen3, [some_labels], tmp_path / "gate", "gate", **GATE)
    (tmp_path / "other" / "work").mkdir(parents=True)
    (tmp_path / "other" / "work" / "job.json").write_text("{}")
    with pytest.raises(TrainingError, match="holds another training"):
        train(qwen3, [some_labels], tmp_path / "other", "gate", **GATE)


def test_what_cannot_be_trained_is_said(qwen3: Path, modernbert: Path, some_labels: Path, tmp_path: Path) -> None:
    from gpu_evaluator.engines.base import EngineFault
    from gpu_evaluator.training.tuning.job import base_objective
    from gpu_evaluator.training.tuning.loop import TrainingError

    source = tmp_path / "A.lean"
    source.write_text("x" * 2000)
    with pytest.raises(TrainingError, match="reads 512 tokens at most"):
        train(modernbert, [source], tmp_path / "a", "masked_token")
    with pytest.raises(TrainingError, match="nothing to learn from"):
        train(qwen3, [write_lines(tmp_path / "none.jsonl", [])], tmp_path / "b", "gate", **GATE)
    with pytest.raises(EngineFault, match="one token each"):  # its tokenizer knows bytes only
        train(modernbert, [some_labels], tmp_path / "c", "gate", **GATE)
    with pytest.raises(TrainingError, match="cannot be loaded"):
        train(tmp_path / "nowhere", [some_labels], tmp_path / "d", "gate", **GATE)
    assert (base_objective(str(qwen3)), base_objective(str(modernbert))) == ("next_token", "masked_token")
    with pytest.raises(TrainingError, match="is no model"):
        base_objective(str(tmp_path))


def test_a_loss_that_is_no_number_ends_the_training(qwen3: Path, some_labels: Path, tmp_path: Path) -> None:
    from gpu_evaluator.training.tuning.loop import TrainingError

    with pytest.raises(TrainingError, match=r"step \d+: the loss is"):
        train(qwen3, [some_labels], tmp_path / "gate", "gate", epochs=20, **{**GATE, "learning_rate": 1e30})


def test_the_rate_is_that_of_transformers_but_for_a_step() -> None:
    torch = pytest.importorskip("torch", reason="run by `make test-train`")
    transformers = pytest.importorskip("transformers", reason="run by `make test-train`")
    from gpu_evaluator.training.tuning.schedule import rate_at

    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=3.0)
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, 50, 1000)
    for step in range(1000):
        assert rate_at(step, 1000, 0.05, 3.0) == pytest.approx(optimizer.param_groups[0]["lr"], abs=3.0 / 50 + 1e-9)
        optimizer.step()
        schedule.step()
