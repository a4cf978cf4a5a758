"""`lean-reward label export`: programs with both verdicts, as training data."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TextIO

import typer

app = typer.Typer(no_args_is_help=True, help="Programs with Lean's verdicts, as training data.")


@app.callback()
def label() -> None:
    """Programs with Lean's verdicts, as training data."""


@app.command("export")
def export(
    output: Path = typer.Option(None, "--output", "-o", help="File to write; default: standard output."),
    audited: bool = typer.Option(False, "--audited", help="Only the audit sample, which is drawn uniformly."),
) -> None:
    """Write the programs that Lean and the evaluator both judged, a JSON object a line, the oldest first.

    They are kept in the queue's server, the last `gateway.labels_kept` of them, for 30 days. Exit status: 2 when the
    settings do not suffice or the server does not answer.
    """
    from services.queue.errors import QueueUnavailable
    from services.runtime.settings import SettingsError, load_settings

    try:
        settings = load_settings()
        if settings.queue.url is None:
            raise SettingsError("set LEAN_REWARD_QUEUE_URL to the queue of the gateways")
        url, prefix = settings.queue.url.get_secret_value(), settings.queue.prefix
        if output is None:
            count = asyncio.run(_export(url, prefix, sys.stdout, audited))
        else:
            with output.open("w", encoding="utf-8") as file:
                count = asyncio.run(_export(url, prefix, file, audited))
    except (SettingsError, QueueUnavailable, OSError) as error:
        typer.echo(f"lean-reward label export: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{count} programs", err=True)


async def _export(url: str, prefix: str, file: TextIO, audited: bool) -> int:
    from reward_gateway.quality.records import PairRecords
    from services.queue.connection import connect

    redis = connect(url)
    count = 0
    try:
        async for label in PairRecords(redis, prefix=prefix, window_s=1, labels_kept=0).labels():
            if label.audited or not audited:
                file.write(label.model_dump_json() + "\n")
                count += 1
    finally:
        await redis.aclose()
    return count
