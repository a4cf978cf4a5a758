"""A document as Markdown; its plots are SVG files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from reward_gateway.reports.document import Charts, Document, Table, text

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")


def write_markdown(document: Document, path: Path, charts: Charts) -> None:
    """Write the file and `<its name>-<number>.svg` for each plot. Raises `OSError`."""
    plots: dict[int, str] = {}
    for number, section in enumerate(document.sections):
        if (drawn := charts.draw(section)) is not None:
            plots[number] = f"{path.stem}-{number + 1}.svg"
            path.with_name(plots[number]).write_text(drawn, encoding="utf-8")
    path.write_text(as_markdown(document, plots), encoding="utf-8")


def as_markdown(document: Document, plots: Mapping[int, str]) -> str:
    """The text. `plots`: file names of the plots, by the place of their section."""
    lines = [f"# {escape(document.title)}", "", document.about, ""]
    for number, section in enumerate(document.sections):
        lines += [f"## {escape(section.title)}", "", section.note, "", *_table(section.table), ""]
        if number in plots:
            lines += [f"![{escape(section.title)}](<{plots[number]}>)", ""]
    return "\n".join(lines)


def escape(words: str) -> str:
    """Text of a stranger as text: on one line, and no Markdown in it."""
    return _SPECIAL.sub(r"\\\1", " ".join(words.split()))


def _table(table: Table) -> Iterator[str]:
    yield "| " + " | ".join(map(escape, table.headers)) + " |"
    yield "|" + " --- |" * len(table.headers)
    for row in table.rows:
        yield "| " + " | ".join(escape(text(cell)) for cell in row) + " |"
