"""Which theorems a candidate's own text declares, by the names that Lean gives them."""

from __future__ import annotations

import re

from services.proofs.lexical import IDENTIFIER, IDENTIFIER_REST, SPACE
from services.proofs.masking import mask

_COMMAND = re.compile(
    rf"(?<![{IDENTIFIER_REST}.«`])(?P<word>theorem|lemma|namespace|section|mutual|end)(?![{IDENTIFIER_REST}.])"
    rf"(?=(?:[{SPACE}]+(?P<name>{IDENTIFIER}))?)"
)
_COMPONENT = re.compile(r"«[^»]*»|[^.«]+")
_SCOPES = {"section", "mutual"}
# Behind these an identifier would be read although the word stands alone: `end theorem`, `section variable`.
_KEYWORDS = {
    "theorem",
    "lemma",
    "namespace",
    "section",
    "mutual",
    "end",
    "variable",
    "open",
    "universe",
    "def",
    "example",
}


def statement_name(statement: str) -> str | None:
    """The name in `theorem NAME ...`, as it is written there; None when there is none."""
    found = next((f for f in _COMMAND.finditer(_searchable(statement)) if f["word"] in ("theorem", "lemma")), None)
    return statement[found.start("name") : found.end("name")] if found and found["name"] else None


def declared_theorems(code: str) -> list[str]:
    """Full names in the order of the text, each once: `namespace A` and `_root_` are taken into account."""
    text = _searchable(code)
    scopes: list[str | None] = []  # a namespace's component, None for a section
    names: dict[str, None] = {}
    for found in _COMMAND.finditer(text):
        name = code[found.start("name") : found.end("name")] if found["name"] else None
        if name in _KEYWORDS:
            name = None
        word = found["word"]
        if word in _SCOPES:
            scopes += [None] * (len(_COMPONENT.findall(name)) if name and word == "section" else 1)
        elif word == "namespace" and name:
            scopes += _COMPONENT.findall(name)
        elif word == "end":
            del scopes[max(0, len(scopes) - (len(_COMPONENT.findall(name)) if name else 1)) :]
        elif word in ("theorem", "lemma") and name:
            if name.startswith("_root_."):
                names[name.removeprefix("_root_.")] = None
            else:
                names[".".join([*(scope for scope in scopes if scope is not None), name])] = None
    return list(names)


def _searchable(code: str) -> str:
    return mask(code).text
