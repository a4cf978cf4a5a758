"""`lean-reward report`."""

from __future__ import annotations

import json
from pathlib import Path

import typer

_FORMATS = (".md", ".html")


def report(
    files: list[Path] = typer.Argument(
        help="Recordings, answers of `evaluate --json`, lines of `label export`, answers of /v1/trajectories/score."
    ),
    output: list[Path] = typer.Option([], "--output", "-o", help="Write the report here, .md or .html; several times."),
    title: str = typer.Option("Report", "--title", help="Its title."),
    stretches: int = typer.Option(20, "--stretches", min=1, help="Rows of a drift table at most."),
    as_json: bool = typer.Option(False, "--json", help="Print the tables as one JSON object."),
) -> None:
    """Make tables and plots of recorded runs, as the papers have them.

    Without --output the report is printed as Markdown, without plots. Exit status: 2 when a file cannot be used.
    """
    from reward_gateway.reports.content import make_document
    from reward_gateway.reports.document import Charts
    from reward_gateway.reports.markdown import as_markdown, write_markdown
    from reward_gateway.reports.page import write_page
    from reward_gateway.reports.sources import SourceError, read_sources

    charts = Charts()
    try:
        for path in output:
            if path.suffix.lower() not in _FORMATS:
                raise SourceError(f"--output: {path} ends in none of {', '.join(_FORMATS)}")
        document = make_document(read_sources(files), title, stretches)
        for path in output:
            path.parent.mkdir(parents=True, exist_ok=True)
            (write_page if path.suffix.lower() == ".html" else write_markdown)(document, path, charts)
    except (SourceError, OSError) as error:
        typer.echo(f"lean-reward report: {error}", err=True)
        raise typer.Exit(2) from None
    if charts.missing is not None:
        typer.echo(f"plots are left out: {charts.missing}", err=True)
    if as_json:
        typer.echo(json.dumps(document.as_json(), allow_nan=False))
    elif not output:
        typer.echo(as_markdown(document, {}), nl=False)
