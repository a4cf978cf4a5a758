"""A penalty and its reason."""

from __future__ import annotations

from dataclasses import dataclass

QUOTE = 300  # characters of a command that a penalty quotes

NAMES = {
    1: "consecutive_repetition",
    2: "no_op_command",
    3: "constant_shell_output",
    4: "pure_print_script",
    5: "intermediate_no_action",
    6: "no_progress_reexecution",
}


@dataclass(frozen=True, slots=True)
class Penalty:
    """``rule`` is its number in lean4agenticrl, Appendix I.2; ``quote`` the normalised command or the text that it
    saw, cut at ``QUOTE`` characters; ``earlier_step`` the run that a repeat repeats.
    """

    step: int
    rule: int
    detail: str
    quote: str | None = None
    earlier_step: int | None = None


def quoted(text: str) -> str:
    """``text`` cut to ``QUOTE`` characters, and printable: a lone surrogate of a hostile record becomes ``?``."""
    cut = text if len(text) <= QUOTE else text[: QUOTE - 3] + "..."
    return cut.encode("utf-8", "replace").decode("utf-8")
