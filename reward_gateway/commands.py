"""`lean-reward gateway`, `openapi`, `label export` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from reward_gateway.quality.commands import app as label
from reward_gateway.reports.commands import report

app = typer.Typer()
app.add_typer(label, name="label")
app.command("report")(report)


@app.command("gateway")
def gateway(
    host: str = typer.Option(None, "--host", help="Address to listen on."),
    port: int = typer.Option(None, "--port", min=0, max=65535, help="Port to listen on; 0 picks a free one."),
) -> None:
    """Run the HTTP server. SIGTERM drains: running batches end, then it stops."""
    from reward_gateway.server import run
    from services.runtime.logging import configure_logging
    from services.runtime.settings import SettingsError, load_settings
    from services.runtime.tracing import configure_tracing, end_tracing

    given: dict[str, Any] = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    try:
        settings = load_settings(**({"gateway": given} if given else {}))
        configure_logging(settings.log, service="gateway")
        configure_tracing(settings.tracing, "gateway")
        run(settings)
    except SettingsError as error:
        typer.echo(f"lean-reward gateway: {error}", err=True)
        raise typer.Exit(2) from None
    finally:
        end_tracing()


@app.command("openapi")
def openapi(
    output: Path = typer.Option(None, "--output", "-o", help="File to write; default: standard output."),
) -> None:
    """Print the OpenAPI document that `docs/openapi.json` holds."""
    import json

    from reward_gateway.openapi import build_document

    text = json.dumps(build_document(), indent=1, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
