"""The `lean-reward` command: collects the commands that each package registers.

A package registers a `typer.Typer` under the entry-point group `lean_reward.commands`, so the ground floor never
imports the floors above it. Heavy imports belong inside the command functions.
"""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

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
    app()


if __name__ == "__main__":
    main()
