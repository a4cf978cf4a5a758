"""`lean-reward label` and `lean-reward train linear`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from gpu_evaluator.training.tuning import commands as tuning

if TYPE_CHECKING:
    from gpu_evaluator.training.label import LabelRules, Tally
    from services.runtime.settings import Settings


class _LabelGroup(TyperGroup):
    """`lean-reward label FILE` is `lean-reward label programs FILE`: what is no command is the file or an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["programs", *args]
        return super().parse_args(ctx, args)


label = typer.Typer(cls=_LabelGroup, help="Programs labelled by Lean.", no_args_is_help=True)
train = typer.Typer(help="Train models that predict Lean.", no_args_is_help=True)
train.add_typer(tuning.train)

_KEEP_RESULTS_S = 600.0


@label.command("programs")
def label_programs(
    file: Path = typer.Argument(help="JSON lines with code, and id, group, statement, header where they are known."),
    output: Path = typer.Option(..., "--output", "-o", help="Labels are appended here; an interrupted run goes on."),
    timeout: float = typer.Option(180.0, "--timeout", min=0.001, help="Limit of one check, seconds."),
    workers: int = typer.Option(
        None, "--workers", min=1, help="Lean engines, where no queue is set; default: all cores."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for a script."),
) -> None:
    """Have Lean judge programs, and write its verdicts and reference traces.

    It uses the workers of the queue that is set (LEAN_REWARD_QUEUE_URL), else it starts its own. Timeouts and programs
    that the precheck rejects get no label; they are listed in OUTPUT.excluded. Exit status: 0 every program is labelled
    or excluded, 1 some met a fault of the infrastructure (run it again), 2 it cannot run.
    """
    from gpu_evaluator.training.label import LabelRules
    from gpu_evaluator.training.records import RecordError
    from services.runtime.settings import SettingsError, load_settings

    try:
        settings = load_settings()
        gateway = settings.gateway
        rules = LabelRules(gateway.header, gateway.profile, gateway.heartbeats, timeout)
        tally = asyncio.run(_label(file, output, settings, rules, workers))
    except (SettingsError, RecordError) as error:
        typer.echo(f"lean-reward label: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command goes on", err=True)
        raise typer.Exit(130) from None
    counts = {"valid": tally.valid, "invalid": tally.invalid, "faults": tally.faults, "excluded": dict(tally.excluded)}
    if as_json:
        typer.echo(json.dumps(counts))
    else:
        excluded = ", ".join(f"{count} {reason}" for reason, count in tally.excluded.most_common()) or "none"
        typer.echo(f"{tally.valid} valid, {tally.invalid} invalid; excluded: {excluded}; faults: {tally.faults}")
    raise typer.Exit(1 if tally.faults else 0)


async def _label(file: Path, output: Path, settings: Settings, rules: LabelRules, workers: int | None) -> Tally:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from gpu_evaluator.training.label import Labeller
    from gpu_evaluator.training.local_lean import queue_url
    from gpu_evaluator.training.records import LabelFile, read_programs
    from services.queue import JobQueue, connect

    records = list(read_programs(file))
    labels = LabelFile(output)
    left = sum(record.key not in labels.done for record in records)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        async with queue_url(settings, workers) as url:
            redis = connect(url)
            queue = JobQueue(
                redis,
                prefix=settings.queue.prefix,
                lease_s=settings.queue.lease_s,
                keep_s=_KEEP_RESULTS_S,
                max_depth=settings.queue.max_depth,
            )
            with Progress(*columns, console=Console(stderr=True)) as bar:
                task = bar.add_task("labelling", total=left)
                labeller = Labeller(queue, labels, rules, lambda tally: bar.update(task, completed=tally.done))
                try:
                    return await labeller.run(records)
                finally:
                    await redis.aclose()
    finally:
        labels.close()


@train.command("linear")
def train_linear(
    files: list[Path] = typer.Argument(help="Labels, as `lean-reward label` or `label export` writes them."),
    output: Path = typer.Option(..., "--output", "-o", help="The model, for LEAN_REWARD_EVALUATOR_GATE."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for a script."),
) -> None:
    """Train the linear demonstration model, and say how it does on problems that were held out.

    The model that is written is trained on all labels. Exit status: 0 written, 2 the labels cannot be used.
    """
    from gpu_evaluator.training.corpus import read_examples
    from gpu_evaluator.training.linear import Example, measure, split, train
    from gpu_evaluator.training.records import RecordError

    try:
        records = list(read_examples(files))
        toolchains = sorted({record.toolchain for record in records})
        if not records:
            raise RecordError(f"no label in {', '.join(map(str, files))}")
        if len(toolchains) != 1:
            raise RecordError(f"labels of one toolchain are needed, these have {', '.join(toolchains)}")
        examples = [Example(record.program, record.valid, record.problem) for record in records]
        kept, held = split(examples)
        counts = measure(train(kept, toolchains[0]), held)
        train(examples, toolchains[0]).save(output)
    except (RecordError, OSError, ValueError) as error:
        typer.echo(f"lean-reward train linear: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps({"programs": len(examples), "toolchain": toolchains[0], "held_out": asdict(counts)}))
        return
    typer.echo(
        f"{len(examples)} programs; of {counts.programs} on held-out problems ({counts.valid} valid) the gate is right "
        f"on {counts.gate_right}, the feedback model on {counts.feedback_right}"
    )
