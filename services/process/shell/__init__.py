"""Shell text as syntax: what the penalty rules reason about instead of strings."""

from services.process.shell.parse import parse
from services.process.shell.syntax import (
    Assignment,
    Group,
    Node,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Word,
)

__all__ = [
    "Assignment",
    "Group",
    "Node",
    "Pipeline",
    "Redirect",
    "Script",
    "Simple",
    "Word",
    "parse",
]
