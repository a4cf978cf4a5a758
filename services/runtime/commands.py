"""Commands about the installation itself: `lean-reward settings`."""

from __future__ import annotations

import json

import typer

app = typer.Typer()


@app.command("settings")
def settings(as_json: bool = typer.Option(False, "--json", help="Print JSON for a script.")) -> None:
    """Print every setting: its variable, its value now, and what it means."""
    from rich.console import Console
    from rich.table import Table

    from services.runtime.settings import SettingsError, describe, load_settings

    try:
        current = load_settings()
    except SettingsError as error:
        typer.echo(f"lean-reward: {error}", err=True)
        raise typer.Exit(2) from None
    rows = [
        {
            "variable": variable,
            "toml": f"[{section}] {name}",
            "value": _shown(getattr(getattr(current, section), name)),
            "meaning": meaning,
        }
        for variable, section, name, meaning in describe()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table("variable", "value", "meaning", title="Settings", show_lines=False)
    for row in rows:
        table.add_row(row["variable"], "" if row["value"] is None else str(row["value"]), row["meaning"])
    Console().print(table)


def _shown(value: object) -> str | None:
    return None if value is None else str(value)  # a SecretStr prints as stars
