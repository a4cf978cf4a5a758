"""The Lean library as one text, for engines that check single programs and know no packages.

`library` beside this module is a link to the repository's `lean/` folder; a built distribution carries a copy of it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent / "library"

CERTIFICATES = "LeanReward.Packed"
"""What certificates evaluate, without what it stands for and without any proof."""

CHECKERS = ("LeanReward.Coverage", "LeanReward.Information", "LeanReward.Reading")
"""Every definition, without a proof."""

EVERYTHING = "LeanReward"
"""Every definition and every theorem."""

_IMPORT = re.compile(r"^import +(\S+)$", re.MULTILINE)


def source_of(module: str) -> str:
    """The text of one module of the library. Raises FileNotFoundError for a module that it does not have."""
    return (LIBRARY / (module.replace(".", "/") + ".lean")).read_text(encoding="utf-8")


def modules(*roots: str) -> list[str]:
    """The roots and everything that they import, each after its own imports."""
    ordered: list[str] = []

    def visit(module: str) -> None:
        if module not in ordered:
            for imported in _IMPORT.findall(source_of(module)):
                visit(imported)
            ordered.append(module)

    for root in roots:
        visit(root)
    return ordered


@lru_cache(maxsize=8)
def preamble(*roots: str) -> str:
    """The roots and everything that they import as one program, imports removed.

    Nothing of it is compiled (the embedded Lean has no code of the core library to link with): it is for the kernel.
    """
    texts = (_IMPORT.sub("", source_of(module)).strip("\n") + "\n" for module in modules(*roots))
    return "noncomputable section\n" + "\n".join(texts)
