"""Takes a candidate's program apart as the REPL needs it: its imports, and the rest in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.proofs.header import read_imports
from services.proofs.masking import Masked, mask


@dataclass(frozen=True, slots=True)
class Program:
    """`imports`: the import block on one line, comments dropped; `body`: the rest at its own lines and columns.

    `masked` is the body without comments and strings, of the same length.
    """

    imports: str
    body: str
    masked: Masked


def split_program(code: str) -> Program:
    """Split behind the last import, wherever comments stand. In the body the import block is white space."""
    masked = mask(code)
    end = read_imports(masked).end
    blank = re.sub(r"[^\n]", " ", code[:end])
    without_imports = Masked(blank + masked.text[end:], masked.regions, masked.unterminated, masked.certain)
    return Program(" ".join(masked.text[:end].split()), blank + code[end:], without_imports)
