"""`lean-reward evaluator`; `label`, `train` and `evaluate` come from `gpu_evaluator.training`."""

from __future__ import annotations

from typing import Any

import typer

from gpu_evaluator.training.commands import label, train
from gpu_evaluator.training.evaluation.commands import evaluate

app = typer.Typer()
app.add_typer(label, name="label")
app.add_typer(train, name="train")
app.command("evaluate")(evaluate)


@app.command("evaluator")
def evaluator(
    host: str = typer.Option(None, "--host", help="Address to listen on."),
    port: int = typer.Option(None, "--port", min=0, max=65535, help="Port to listen on; 0 picks a free one."),
    engine: str = typer.Option(None, "--engine", help="linear (a demonstration), vllm, transformers or llamacpp."),
) -> None:
    """Predict Lean's verdicts with the learned models, over HTTP. SIGTERM drains: running requests end, then it stops.

    Exit status: 0 drained, 2 it cannot run (settings, a missing extra, the port is taken).
    """
    from gpu_evaluator.service.server import run
    from services.runtime.auth import KeysError
    from services.runtime.logging import configure_logging
    from services.runtime.settings import SettingsError, load_settings
    from services.runtime.tracing import configure_tracing, end_tracing

    values = (("host", host), ("port", port), ("engine", engine))
    given: dict[str, Any] = {name: value for name, value in values if value is not None}
    try:
        settings = load_settings(**({"evaluator": given} if given else {}))
        configure_logging(settings.log, service="evaluator")
        configure_tracing(settings.tracing, "evaluator")
        run(settings)
    except (SettingsError, KeysError) as error:
        typer.echo(f"lean-reward evaluator: {error}", err=True)
        raise typer.Exit(2) from None
    finally:
        end_tracing()
