"""`lean-reward train` as a person runs it: a command, interrupted, over several processes, with a setting missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpu_evaluator.commands import app
from tests.gpu_evaluator.training.tuning.tiny import train

ROOT = Path(__file__).parents[4]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
TRAIN = ("-m", "services.runtime.cli", "train")


def run(*arguments: object, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *before, *TRAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=ENVIRONMENT, check=False)


@pytest.mark.parametrize("name", ["gate", "feedback", "encoder"])
def test_supervised_training_asks_for_a_learning_rate(name: str, some_labels: Path) -> None:
    answer = CliRunner().invoke(app, ["train", name, str(some_labels), "--model", "x", "-o", "y"])
    assert answer.exit_code == 2
    assert "--learning-rate" in answer.output


def test_the_commands_pretrain_and_train_and_print_a_summary(
    modernbert: Path, some_labels: Path, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "A.lean").write_text("theorem t : 1 = 1 := rfl\n" * 10)
    first = run("pretrain", tmp_path / "src", "--model", modernbert, "-o", tmp_path / "m", "--length", 64, "--json")
    assert first.returncode == 0, first.stderr
    summary = json.loads(first.stdout)
    assert (summary["finished"], summary["steps"], summary["programs"]) == (True, 1, 0)
    assert json.loads((tmp_path / "m" / "lean-reward.json").read_text())["recipe"]["learning_rate"] == 3e-5
    options = ["--learning-rate", "1e-4", "--length", 128, "--batch", 8, "--held-out", 0.2]
    second = run("encoder", some_labels, "--model", tmp_path / "m", "-o", tmp_path / "e", *options)
    assert second.returncode == 0, second.stderr
    assert "programs" in second.stdout
    assert "held out" in second.stdout


def test_a_signal_saves_a_checkpoint_and_the_same_command_goes_on(
    qwen3: Path, some_labels: Path, tmp_path: Path
) -> None:
    arguments = ["gate", some_labels, "--model", qwen3, "-o", tmp_path / "gate", "--learning-rate", "1e-4"]
    arguments += ["--length", 128, "--batch", 1, "--epochs", 20, "--json"]
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
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    finished = json.loads(done.stdout)
    assert finished["finished"]
    assert finished["steps"] == 20 * finished["sequences"] > stopped["steps"] >= 2
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
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node", "2", sys.executable)
    two = run(objective, some_labels, "-o", tmp_path / "two", *options, before=torchrun)
    assert two.returncode == 0, two.stderr
    together = json.loads(two.stdout)
    for name in ("loss_first", "loss_last", "held_out_loss"):
        assert together[name] == pytest.approx(getattr(alone, name), rel=1e-3)
    assert together["held_out_accuracy"] == pytest.approx(alone.held_out_accuracy)
    ours, theirs = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.allclose(ours[name], theirs[name], atol=2e-3), name
