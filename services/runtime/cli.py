"""The `lean-reward` command: collects the commands that each package registers.

A package registers a `typer.Typer` under the entry-point group `lean_reward.commands`, so the ground floor never
imports the floors above it. Heavy imports belong inside the command functions.
"""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

GROUP = "lean_reward.commands"


def main() -> None:
    """Entry point of the console script. Exits with status 2 when the extras are missing."""
    try:
        import typer
    except ModuleNotFoundError:
        sys.exit("lean-reward: the commands need an extra, for example: pip install 'lean-reward[all]'")
    app = typer.Typer(
        name="lean-reward", help="A reward server for formal verification.", no_args_is_help=True, add_completion=False
    )
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        app.add_typer(entry.load())
    join_groups(app)
    app()


def join_groups(app: typer.Typer) -> None:
    """Make one of the groups that several packages register under the same name; the first one's help and class stay.

    `app` holds the packages' applications, none of which has a name.
    """
    found: dict[str, typer.Typer] = {}
    for package in app.registered_groups:
        if package.typer_instance is None:
            continue
        kept = []
        for group in package.typer_instance.registered_groups:
            instance = group.typer_instance
            first = found.setdefault(group.name, instance) if group.name and instance is not None else instance
            if first is instance or first is None or instance is None:
                kept.append(group)
            else:
                first.registered_commands.extend(instance.registered_commands)
        package.typer_instance.registered_groups = kept


if __name__ == "__main__":
    main()
