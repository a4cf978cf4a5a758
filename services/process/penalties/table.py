"""Penalties as a table for a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from services.contracts.trajectories import StepPenalty
from services.process.penalties.evidence import NAMES


def print_table(name: str, rows: Sequence[StepPenalty], console: Console | None = None) -> None:
    """Prints one line for each penalty under the file's name, and a closing count. Text of a trajectory is escaped."""
    console = console or Console()
    penalised = sum(1 for row in rows if row.gamma)
    console.print(f"[bold]{escape(name)}[/bold]: {len(rows)} steps, {penalised} penalised")
    if not penalised:
        return
    table = Table(show_edge=False, pad_edge=False)
    for title, style in (("step", "bold"), ("stage", ""), ("rule", "red"), ("why", ""), ("command or text", "dim")):
        table.add_column(title, style=style, overflow="fold", no_wrap=title == "rule")
    for row in rows:
        for reason in row.evidence:
            table.add_row(
                str(row.step),
                escape(row.stage or ""),
                f"{reason.rule} {NAMES[reason.rule]}",
                escape(reason.detail),
                escape(_visible(reason.quote or "")),
            )
    console.print(table)


def _visible(text: str) -> str:
    """Control characters written out, so that a candidate's text cannot move the reader's cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
