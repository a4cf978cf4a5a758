"""`lean-reward train pretrain | gate | feedback | encoder`."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gpu_evaluator.training.tuning.recipe import PAPER, Objective

if TYPE_CHECKING:
    from gpu_evaluator.training.tuning.job import Summary

train = typer.Typer()

_Labels = Annotated[
    list[Path],
    typer.Argument(help="Labels, as `lean-reward label` writes them; also `label export`, but for feedback."),
]
_Base = Annotated[str, typer.Option("--model", help="The model to start from: a folder, or a name on the Hub.")]
_Output = Annotated[
    Path, typer.Option("--output", "-o", help="Folder of the trained model; an interrupted run goes on in it.")
]
_Rate = Annotated[
    float, typer.Option("--learning-rate", min=0, help="Peak learning rate; the paper gives none, so choose it.")
]
_Length = Annotated[int, typer.Option(min=16, help="Tokens of a pack, or the context of an encoder.")]
_Batch = Annotated[int, typer.Option(min=1, help="Packs, or an encoder's programs, of one optimizer step.")]
_Rows = Annotated[int, typer.Option(min=1, help="Of these, an encoder's programs in one forward pass.")]
_Epochs = Annotated[int, typer.Option(min=1, help="Passes over the data; 1 in the paper.")]
_HeldOut = Annotated[
    float, typer.Option(min=0, max=0.9, help="Part of the problems to keep out of the training and measure on.")
]
_Seed = Annotated[int, typer.Option(min=0, help="Of the order, the packs, and what is held out.")]
_Precision = Annotated[str, typer.Option(help="bf16 (weights and optimizer stay in float32) or fp32.")]
_Attention = Annotated[
    str, typer.Option(help="How transformers computes attention: sdpa, eager, flash_attention_2 (long packs on GPUs).")
]
_Recompute = Annotated[bool, typer.Option(help="Compute activations again in the backward pass, to need less memory.")]
_Every = Annotated[int, typer.Option("--checkpoint-every", min=1, help="Steps between two checkpoints.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for a script.")]

_Options = dict[str, object]
_STATUS = "Exit status: 0 trained, 2 it cannot run, 130 interrupted (the same command goes on)."


@train.command("pretrain", epilog=_STATUS)
def pretrain(
    texts: Annotated[
        list[Path], typer.Argument(help="Folders with .lean and .md files, files, or JSON lines with text.")
    ],
    model: _Base,
    output: _Output,
    learning_rate: Annotated[float | None, typer.Option(min=0, help="Default: 5e-6, of an encoder 3e-5.")] = None,
    length: Annotated[int | None, typer.Option(min=16, help="Tokens; default: 16,384, of an encoder 8,192.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Packs of one step, or texts; default: 8 or 32.")] = None,
    rows: _Rows = 4,
    epochs: _Epochs = 1,
    held_out: _HeldOut = 0.0,
    seed: _Seed = 42,
    precision: _Precision = "bf16",
    attention: _Attention = "sdpa",
    recompute: _Recompute = True,
    checkpoint_every: _Every = 200,
    as_json: _Json = False,
) -> None:
    """Continue the pretraining of a language model on Lean sources and documentation.

    A causal model predicts the next token on packs; a masked one predicts 30% masked tokens.
    """
    given: _Options = {"learning_rate": learning_rate, "length": length, "batch": batch}
    options: _Options = {"rows": rows, "epochs": epochs, "held_out": held_out, "seed": seed, "precision": precision}
    options |= {"attention": attention, "recompute": recompute}
    _run("pretrain", None, texts, model, output, {**given, **options}, checkpoint_every, as_json)


@train.command("gate", epilog=_STATUS)
def gate(
    labels: _Labels,
    model: _Base,
    output: _Output,
    learning_rate: _Rate,
    length: _Length = PAPER["gate"].length,
    batch: _Batch = PAPER["gate"].batch,
    epochs: _Epochs = 1,
    held_out: _HeldOut = 0.0,
    seed: _Seed = 42,
    precision: _Precision = "bf16",
    attention: _Attention = "sdpa",
    recompute: _Recompute = True,
    checkpoint_every: _Every = 200,
    as_json: _Json = False,
) -> None:
    """Train the one-token classifier: a program, then `true` or `false`, and only that token is learned."""
    options: _Options = {
        "learning_rate": learning_rate,
        "length": length,
        "batch": batch,
        "epochs": epochs,
        "seed": seed,
    }
    options |= {"held_out": held_out, "precision": precision, "attention": attention, "recompute": recompute}
    _run("gate", "gate", labels, model, output, options, checkpoint_every, as_json)


@train.command("feedback", epilog=_STATUS)
def feedback(
    labels: _Labels,
    model: _Base,
    output: _Output,
    learning_rate: _Rate,
    length: _Length = PAPER["feedback"].length,
    batch: _Batch = PAPER["feedback"].batch,
    epochs: _Epochs = 1,
    held_out: _HeldOut = 0.0,
    seed: _Seed = 42,
    precision: _Precision = "bf16",
    attention: _Attention = "sdpa",
    recompute: _Recompute = True,
    checkpoint_every: _Every = 200,
    as_json: _Json = False,
) -> None:
    """Train the feedback model: a program, then its trace, and only the trace is learned."""
    options: _Options = {
        "learning_rate": learning_rate,
        "length": length,
        "batch": batch,
        "epochs": epochs,
        "seed": seed,
    }
    options |= {"held_out": held_out, "precision": precision, "attention": attention, "recompute": recompute}
    _run("feedback", "feedback", labels, model, output, options, checkpoint_every, as_json)


@train.command("encoder", epilog=_STATUS)
def encoder(
    labels: _Labels,
    model: _Base,
    output: _Output,
    learning_rate: _Rate,
    length: _Length = PAPER["encoder"].length,
    batch: _Batch = PAPER["encoder"].batch,
    rows: _Rows = 4,
    epochs: _Epochs = 1,
    held_out: _HeldOut = 0.0,
    seed: _Seed = 42,
    precision: _Precision = "bf16",
    attention: _Attention = "sdpa",
    recompute: _Recompute = True,
    checkpoint_every: _Every = 200,
    as_json: _Json = False,
) -> None:
    """Train an encoder (ModernBERT) to classify programs; of a longer one the head and the tail are read."""
    options: _Options = {
        "learning_rate": learning_rate,
        "length": length,
        "batch": batch,
        "rows": rows,
        "epochs": epochs,
    }
    options |= {"seed": seed, "held_out": held_out, "precision": precision, "attention": attention}
    _run("encoder", "encoder", labels, model, output, {**options, "recompute": recompute}, checkpoint_every, as_json)


def _run(
    name: str,
    objective: Objective | None,
    files: list[Path],
    model: str,
    output: Path,
    options: _Options,
    every: int,
    as_json: bool,
) -> None:
    for file in files:  # before a model is fetched for nothing
        if not file.exists():
            _fail(name, f"{file}: no such file or folder")
    if find_spec("torch") is None or find_spec("transformers") is None:
        _fail(name, "this needs an extra: pip install 'lean-reward[train]'")
    import transformers

    from gpu_evaluator.engines.base import EngineFault
    from gpu_evaluator.training.records import RecordError
    from gpu_evaluator.training.tuning.documents import find_files
    from gpu_evaluator.training.tuning.job import Job, base_objective, run
    from gpu_evaluator.training.tuning.loop import TrainingError
    from gpu_evaluator.training.tuning.processes import join, leave
    from gpu_evaluator.training.tuning.progress import Bar
    from gpu_evaluator.training.tuning.recipe import make_recipe

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    processes = join()
    try:
        if objective is None:
            objective, files = base_objective(model), find_files(files)
        job = Job(model, files, output, make_recipe(objective, **options), every)
        with Bar(shown=processes.leads) as progress:
            summary = run(job, processes, progress)
    except (TrainingError, RecordError, EngineFault, OSError, ValueError) as error:
        _fail(name, str(error))
    except KeyboardInterrupt:  # before the first step; later ones end in order
        _interrupted()
    finally:
        leave(processes)
    if processes.leads:
        typer.echo(json.dumps(asdict(summary)) if as_json else _say(summary, output))
    if not summary.finished:
        _interrupted()


def _say(summary: Summary, output: Path) -> str:
    counts = f"{summary.sequences} sequences, {summary.tokens} tokens, {summary.steps} steps"
    if summary.programs:
        left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(summary.left_out.items())) or "none"
        counts = f"{summary.programs} programs ({summary.valid} valid; left out: {left_out}), {counts}"
    if summary.loss_first is not None:
        counts += f"; loss {summary.loss_first:.4f} to {summary.loss_last:.4f}"
    if summary.held_out_loss is not None:
        counts += f", held out {summary.held_out_loss:.4f} (accuracy {summary.held_out_accuracy:.4f})"
    return f"{counts}; {output if summary.finished else 'not finished'}"


def _interrupted() -> NoReturn:
    typer.echo("interrupted; the same command goes on", err=True)
    raise typer.Exit(130)


def _fail(name: str, message: str) -> NoReturn:
    typer.echo(f"lean-reward train {name}: {message}", err=True)
    raise typer.Exit(2)
