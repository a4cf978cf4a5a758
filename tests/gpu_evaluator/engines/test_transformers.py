"""Classifiers on transformers, tiny and random; they need torch, which `make test-train` brings."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="run by `make test-train`")
transformers = pytest.importorskip("transformers", reason="run by `make test-train`")

from gpu_evaluator.engines.base import EngineFault  # noqa: E402
from gpu_evaluator.engines.serving.lengths import keep_ends  # noqa: E402
from gpu_evaluator.engines.transformers.classifier import Classifier  # noqa: E402
from gpu_evaluator.engines.transformers.gate import TransformersGate  # noqa: E402
from tests.gpu_evaluator.tiny_qwen3 import CONTEXT, TOKENS, encode, exact_score, make_weights, write_folder  # noqa: E402

PROGRAMS = ["x", "theorem t : 1 + 1 = 2 := rfl\n", "⊢ ∀ α, α\n" * 5]
WEIGHTS = make_weights()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "qwen3"
    write_folder(path, WEIGHTS)
    return path


async def test_scores_of_a_padded_batch_are_those_of_the_whole_vocabulary(folder: Path) -> None:
    gate = TransformersGate(folder, "4.15.0", context=CONTEXT, batch_tokens=4096)
    await gate.start()
    found = {index: answer async for index, answer in gate.score(PROGRAMS)}
    for index, program in enumerate(PROGRAMS):
        assert found[index] == pytest.approx(exact_score(WEIGHTS, encode(program)), abs=1e-4)
    await gate.stop()
    assert not await gate.healthy()


def test_of_a_long_program_both_ends_count(folder: Path) -> None:
    program = "".join(f"-- line {n}\n" for n in range(300))
    (score,) = Classifier(folder, context=256, batch_tokens=4096).score([program])
    assert score == pytest.approx(exact_score(WEIGHTS, keep_ends(encode(program), 256)), abs=1e-4)


def test_a_modernbert_classifier_scores_alike_alone_and_in_a_batch(folder: Path, tmp_path: Path) -> None:
    config = transformers.ModernBertConfig(
        vocab_size=len(TOKENS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        pad_token_id=len(TOKENS) - 1,
        num_labels=2,
    )
    transformers.ModernBertForSequenceClassification(config).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    classifier = Classifier(tmp_path, context=CONTEXT, batch_tokens=8192)
    together = classifier.score([*PROGRAMS, "y" * 2000])
    alone = [classifier.score([program])[0] for program in [*PROGRAMS, "y" * 2000]]
    assert together == pytest.approx(alone, abs=1e-4)
    assert all(0 < score < 1 for score in together)


async def test_a_folder_without_a_model_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(EngineFault, match="holds no model"):
        await TransformersGate(tmp_path, None, context=CONTEXT, batch_tokens=4096).start()
