"""`lean-reward penalties`: gamma of recorded trajectories, for a person or a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from services.process.penalties import ActionReader

app = typer.Typer()


@app.command()
def penalties(
    files: Annotated[list[Path], typer.Argument(help="Trajectory files (JSON or NDJSON); - is standard input.")],
    format: Annotated[
        str | None, typer.Option(help="Who wrote them (steps, chat, atif, ...); detected by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each file, one a line.")] = False,
) -> None:
    """Print the penalties (gamma) of agent trajectories. Ends with status 1 when a file could not be judged."""
    from services.process.penalties import ActionReader

    reader = ActionReader()
    failed = False
    for path in files:
        failed = not _one(path, format, reader, as_json) or failed
    raise typer.Exit(1 if failed else 0)


def _one(path: Path, format: str | None, reader: ActionReader, as_json: bool) -> bool:
    """Judges one file and prints it; False, with the reason, when it cannot be read or does not fit."""
    from services.process.penalties import penalties_of
    from services.process.penalties.table import print_table
    from services.process.trajectories import TrajectoryError

    name = "standard input" if str(path) == "-" else str(path)
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8", errors="replace")
        rows = penalties_of(text, format, reader)
    except OSError as error:
        return _fail(name, error.strerror or str(error), as_json)
    except TrajectoryError as error:
        return _fail(name, str(error), as_json)
    if as_json:
        typer.echo(json.dumps({"file": name, "steps": [row.model_dump(mode="json") for row in rows]}))
    else:
        print_table(name, rows)
    return True


def _fail(name: str, reason: str, as_json: bool) -> bool:
    if as_json:
        typer.echo(json.dumps({"file": name, "error": reason}))
    typer.echo(f"{name}: {reason}", err=True)
    return False
