"""The card beside a model's weights, and what the service makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_evaluator.card import CARD_NAME, CardError, ModelCard, declared_toolchain, read_card
from gpu_evaluator.catalog import make_pairs
from services.runtime.settings import SettingsError, load_settings

CARD = ModelCard(role="gate", toolchain="4.15.0", base="b", steps=3, recipe={"batch": 8})


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    CARD.write(tmp_path)
    assert read_card(tmp_path) == CARD


def test_the_card_speaks_for_its_model_and_the_setting_for_others(tmp_path: Path) -> None:
    CARD.write(tmp_path)
    assert declared_toolchain(str(tmp_path), ("gate",), "4.9.0") == "4.15.0"
    assert declared_toolchain("Qwen/Qwen3-8B", ("gate",), "4.9.0") == "4.9.0"
    assert declared_toolchain(str(tmp_path / "none"), ("gate",), None) is None


def test_a_model_in_another_role_is_refused(tmp_path: Path) -> None:
    CARD.write(tmp_path)
    with pytest.raises(CardError, match="of the role gate, and not feedback"):
        declared_toolchain(str(tmp_path), ("feedback",), None)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"role": "judge"}', b"\xff"])
def test_a_broken_card_is_an_error_and_not_no_card(content: bytes, tmp_path: Path) -> None:
    (tmp_path / CARD_NAME).write_bytes(content)
    with pytest.raises(CardError, match="no model card"):
        read_card(tmp_path)


def test_the_evaluator_declares_what_the_cards_say(tmp_path: Path) -> None:
    gate, feedback = tmp_path / "gate", tmp_path / "feedback"
    for folder, role, toolchain in ((gate, "gate", "4.15.0"), (feedback, "feedback", "4.28.0")):
        folder.mkdir()
        ModelCard(role=role, toolchain=toolchain, base="b", steps=1).write(folder)
    models = {"engine": "vllm", "gate": str(gate), "feedback": str(feedback), "toolchain": "4.9.0"}
    (pair,) = make_pairs(load_settings(evaluator=models))
    assert (pair.gate.identity.toolchain, pair.feedback.identity.toolchain) == ("4.15.0", "4.28.0")
    swapped = {**models, "gate": str(feedback), "feedback": str(gate)}
    with pytest.raises(SettingsError, match=r"evaluator.gate: .* of the role feedback"):
        make_pairs(load_settings(evaluator=swapped))
