"""Commands about the installation itself: `lean-reward settings`."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from enum import Enum

import typer
from pydantic import SecretStr

app = typer.Typer()

_NARROWEST = 60
_WIDEST = 120


@app.command("settings")
def settings(as_json: bool = typer.Option(False, "--json", help="Print JSON for a script.")) -> None:
    """Print every setting: its variable, its value now as it would be set, and what it means."""
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
            "value": shown(getattr(getattr(current, section), name)),
            "meaning": meaning,
        }
        for variable, section, name, meaning in describe()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    width = _WIDEST
    if sys.stdout.isatty():
        width = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))
    for row in rows:
        typer.echo(f"{row['variable']}={row['value'] or ''}")
        typer.echo(textwrap.fill(row["meaning"] or "", width, initial_indent="    ", subsequent_indent="    "))


def shown(value: object) -> str | None:
    """A setting's value as its environment variable takes it; None where it is not set, stars for a secret."""
    if value is None:
        return None
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return json.dumps([shown(item) for item in value])
    return str(value) if not isinstance(value, SecretStr) or value.get_secret_value() else ""
