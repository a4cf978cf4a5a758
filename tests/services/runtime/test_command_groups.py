"""A group of commands that two packages register under one name is one group."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from services.runtime.cli import join_groups


def package(command: str, text: str) -> typer.Typer:
    group = typer.Typer(help=f"Help of {text}.")
    group.command(command)(lambda: typer.echo(text))
    application = typer.Typer()
    application.add_typer(group, name="label")
    return application


def test_commands_of_one_group_come_from_both_packages() -> None:
    app = typer.Typer()
    for part in (package("here", "one"), package("there", "two")):
        app.add_typer(part)
    join_groups(app)
    run = CliRunner().invoke
    assert run(app, ["label", "here"]).output == "one\n"
    assert run(app, ["label", "there"]).output == "two\n"
    assert "Help of one." in run(app, ["label", "--help"]).output
