"""`lean-reward train` as a person runs it: a command, interrupted, over several processes, with a setting missing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpu_evaluator.card import read_card
from gpu_evaluator.commands import app
from gpu_evaluator.engines.transformers.classifier import Classifier
from tests.gpu_evaluator.training.tuning.tiny import train

ROOT = Path(__file__).parents[4]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "training.md").read_text(encoding="utf-8"), re.DOTALL)
DOCUMENTED = [line for block in BLOCKS for line in block.splitlines()]
TRAIN = ("-m", "services.runtime.cli", "train")


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, env=ENVIRONMENT, check=False
    )


def launch_two() -> list[object]:
    """`lean-reward` in two processes, started as docs/training.md says."""
    (documented,) = (line for line in DOCUMENTED if line.startswith("torchrun "))
    launcher, *options = documented.partition(" lean-reward ")[0].replace("8", "2").split()
    programs = Path(sys.executable).parent
    return [programs / launcher, *options, programs / "lean-reward"]


@pytest.mark.parametrize("name", ["gate", "feedback", "encoder"])
def test_supervised_training_asks_for_a_learning_rate(name: str, some_labels: Path) -> None:
    answer = CliRunner().invoke(app, ["train", name, str(some_labels), "--model", "x", "-o", "y"])
    assert answer.exit_code == 2
    assert "--learning-rate" in answer.output


def test_the_documented_commands_train_models_that_are_served(
    qwen3: Path, modernbert: Path, some_labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every `train` command of docs/training.md, with tiny models in place of those that it names."""
    monkeypatch.chdir(tmp_path)
    for folder in ("mathlib4", "lean-pool"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "A.lean").write_text(f"theorem t : 1 = 1 := rfl -- {folder}\n" * 10)
    (tmp_path / "labels.jsonl").write_bytes(some_labels.read_bytes())
    stand_ins = {"Qwen/Qwen3-8B": qwen3, "Qwen/Qwen3-4B": qwen3, "answerdotai/ModernBERT-large": modernbert}
    commands = [line for line in DOCUMENTED if line.startswith("lean-reward train ")]
    assert len(commands) == 6
    for command in commands:
        is_pretraining = " pretrain " in command
        arguments = [str(stand_ins.get(word, word)).replace("RATE", "1e-4") for word in command.split()[1:]]
        answer = CliRunner().invoke(app, [*arguments, "--length", "384", "--json"])
        assert answer.exit_code == 0, f"{command}: {answer.output}"
        summary = json.loads(answer.stdout)
        assert summary["finished"]
        card = read_card(Path(arguments[arguments.index("-o") + 1]))
        assert card is not None
        assert card.toolchain == (None if is_pretraining else "4.15.0")
        if is_pretraining:
            assert card.recipe["learning_rate"] == (3e-5 if "encoder" in command else 5e-6)
            assert card.programs == 0
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 2
    assert "holds a trained model already" in again.output
    for gate in ("gate", "encoder"):
        scores = Classifier(tmp_path / gate, context=256, batch_tokens=4096).score(["theorem t : 1 = 1 := rfl"])
        assert 0 < scores[0] < 1


def test_a_signal_saves_a_checkpoint_and_the_same_command_goes_on(
    qwen3: Path, some_labels: Path, tmp_path: Path
) -> None:
    arguments = ["gate", some_labels, "--model", qwen3, "-o", tmp_path / "gate", "--learning-rate", "1e-4"]
    arguments += ["--length", 128, "--batch", 1, "--epochs", 12, "--json"]
    process = subprocess.Popen(
        [sys.executable, *TRAIN, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    log = tmp_path / "gate" / "log.jsonl"
    deadline = time.monotonic() + 200
    while not (log.exists() and log.read_text().count("\n") >= 2) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    stopped = json.loads(out)
    assert not stopped["finished"]
    assert "the same command goes on" in err
    done = run(*launch_two(), "train", *arguments)  # on a machine with more processes
    assert done.returncode == 0, done.stderr
    finished = json.loads(done.stdout)
    assert finished["finished"]
    assert finished["steps"] == 12 * finished["sequences"] > stopped["steps"] >= 2
    steps = [json.loads(line)["step"] for line in log.read_text().splitlines()]
    assert steps == list(range(finished["steps"]))


@pytest.mark.parametrize("objective", ["gate", "encoder"])
def test_two_processes_train_the_same_model_as_one(
    objective: str, qwen3: Path, modernbert: Path, some_labels: Path, tmp_path: Path
) -> None:
    """Weights sharded over two processes on the CPU; a last step with fewer packs than processes is among them."""
    import torch
    from safetensors.torch import load_file

    base = qwen3 if objective == "gate" else modernbert
    settings = {"length": 128, "batch": 3, "epochs": 2, "held_out": 0.3, "learning_rate": 1e-3}
    alone = train(base, [some_labels], tmp_path / "one", objective, **settings)
    options = ["--model", base, "--learning-rate", "1e-3", "--length", 128, "--batch", 3, "--precision", "fp32"]
    options += ["--epochs", 2, "--checkpoint-every", 2, "--held-out", 0.3, "--json"]
    two = run(*launch_two(), "train", objective, some_labels, "-o", tmp_path / "two", *options)
    assert two.returncode == 0, two.stderr
    together = json.loads(two.stdout)
    for name in ("loss_first", "loss_last", "held_out_loss"):
        assert together[name] == pytest.approx(getattr(alone, name), rel=1e-3)
    assert together["held_out_accuracy"] == pytest.approx(alone.held_out_accuracy)
    ours, theirs = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.allclose(ours[name], theirs[name], atol=2e-3), name
