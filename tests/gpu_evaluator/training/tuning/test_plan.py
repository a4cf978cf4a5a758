"""Steps take every sequence once an epoch, however many processes share them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpu_evaluator.commands import app
from gpu_evaluator.training.tuning.plan import Plan
from gpu_evaluator.training.tuning.recipe import PAPER, make_recipe
from gpu_evaluator.training.tuning.schedule import rate_at
from gpu_evaluator.training.tuning.store import TokenStore, TokenWriter, read_meta


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    writer = TokenWriter(tmp_path / "tokens")
    for number in range(37):
        length = 3 + number * 7 % 20
        writer.add([number] * length, learned_from=length // 2, label=number % 2)
    assert read_meta(tmp_path / "tokens") is None  # not finished yet
    writer.close({"source": "x"})
    assert read_meta(tmp_path / "tokens") == {"source": "x"}
    return TokenStore(tmp_path / "tokens")


def test_a_store_gives_back_what_was_written(store: TokenStore) -> None:
    assert len(store) == 37
    assert store[5].tolist() == [5] * 18
    assert (store.learned_from[5], store.labels[5]) == (9, 1)


@pytest.mark.parametrize("objective", ["feedback", "encoder"])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_each_epoch_learns_every_sequence_once(objective: str, processes: int, store: TokenStore) -> None:
    recipe = make_recipe(objective, learning_rate=1.0, length=32, batch=5, rows=2, epochs=2)
    plan = Plan(store, recipe)
    orders = []
    for epoch in range(2):
        seen = []
        for step in range(epoch * plan.steps_an_epoch, (epoch + 1) * plan.steps_an_epoch):
            shares = [plan.turns(step, rank, processes) for rank in range(processes)]
            assert len({len(share) for share in shares}) == 1  # else one process waits for ever
            learned = [n for share in shares for turn in share if turn.counts for n in turn.sequences]
            assert plan.weight(step) == plan.weights[learned].sum()
            assert plan.tokens(step) == store.lengths[learned].sum()
            seen += learned
        assert sorted(seen) == list(range(37))
        orders.append(seen)
    assert orders[0] != orders[1]


def test_weights_are_what_is_learned(store: TokenStore) -> None:
    by_tokens = Plan(store, make_recipe("feedback", learning_rate=1.0, length=32)).weights
    assert np.array_equal(by_tokens, store.lengths - np.maximum(store.learned_from, 1))
    assert Plan(store, make_recipe("encoder", learning_rate=1.0)).weights.tolist() == [1] * 37


def test_the_papers_steps_follow_from_its_counts() -> None:
    assert 130_000 // PAPER["gate"].batch == 16_250
    assert 443_760 // PAPER["feedback"].batch == 55_470
    assert round(4_820_000 / PAPER["encoder"].batch) == pytest.approx(75_251, rel=0.002)


@pytest.mark.parametrize("objective", ["gate", "feedback", "encoder"])
def test_a_learning_rate_that_the_paper_does_not_give_is_not_guessed(objective: str) -> None:
    with pytest.raises(ValueError, match="gives no learning rate"):
        make_recipe(objective)


@pytest.mark.parametrize("rate", [0.0, -1e-5, float("inf"), float("nan")])
def test_a_learning_rate_that_teaches_nothing_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="learning rate"):
        make_recipe("gate", learning_rate=rate)


def test_a_missing_file_is_said_before_a_model_is_fetched(tmp_path: Path) -> None:
    missing = tmp_path / "labels.jsonl"
    options = ["--model", "nobody/has-it", "-o", str(tmp_path / "gate"), "--learning-rate", "1e-5"]
    answer = CliRunner().invoke(app, ["train", "gate", str(missing), *options])
    assert answer.exit_code == 2
    assert "labels.jsonl: no such file" in answer.output.replace("\n", "")


def test_continued_pretraining_has_the_papers_settings() -> None:
    causal, masked = make_recipe("next_token"), make_recipe("masked_token")
    assert (causal.length, causal.batch, causal.learning_rate, causal.warmup) == (16_384, 8, 5e-6, 0.03)
    assert (masked.length, masked.batch, masked.learning_rate, masked.mask) == (8_192, 32, 3e-5, 0.3)
    assert (causal.clip, causal.epochs, causal.precision) == (1.0, 1, "bf16")


def test_the_rate_rises_over_the_warm_up_and_falls_by_half_a_cosine() -> None:
    rates = [rate_at(step, 100, 0.05, 2.0) for step in range(100)]
    assert rates[:5] == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert rates[52] == pytest.approx(1.0)
    assert 0 < rates[-1] < 0.01
    assert rate_at(0, 1, 0.05, 2.0) == 2.0
