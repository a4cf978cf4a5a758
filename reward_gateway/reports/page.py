"""A document as one HTML file without scripts: nothing is fetched when it is opened."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from reward_gateway.reports.document import Cell, Charts, Document, Table, text

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;margin:.8rem 0;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}
th,td{border-bottom:1px solid #ddd;padding:.25rem .7rem;text-align:left;white-space:nowrap}
.n{text-align:right}
h2{margin-top:2.2rem}
p{max-width:52rem}
img{max-width:100%;height:auto}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#161616}th,td{border-color:#444}img{background:#fff}}
"""
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write_page(document: Document, path: Path, charts: Charts) -> None:
    """Write the file, plots and style in it. Raises `OSError`."""
    path.write_text("\n".join(_lines(document, charts)) + "\n", encoding="utf-8")


def _lines(document: Document, charts: Charts) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield f"<title>{escape(document.title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{escape(document.title)}</h1>\n<p>{escape(document.about)}</p>"
    for section in document.sections:
        yield f"<h2>{escape(section.title)}</h2>\n<p>{escape(section.note)}</p>"
        yield from _table(section.table)
        drawn = charts.draw(section)
        if drawn is not None:
            data = base64.b64encode(drawn.encode()).decode()
            yield f'<img alt="{escape(section.title)}" src="data:image/svg+xml;base64,{data}">'
    yield "</body></html>"


def _table(table: Table) -> Iterator[str]:
    kinds = [_kind(row[column] for row in table.rows) for column in range(len(table.headers))]
    heads = (f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, table.headers, strict=True))
    yield "<table><thead><tr>" + "".join(heads) + "</tr></thead><tbody>"
    for row in table.rows:
        cells = (f"<td{kind}>{escape(text(cell))}</td>" for kind, cell in zip(kinds, row, strict=True))
        yield "<tr>" + "".join(cells) + "</tr>"
    yield "</tbody></table>"


def _kind(cells: Iterable[Cell]) -> str:
    """The attribute of a column of numbers."""
    return "" if isinstance(next((cell for cell in cells if cell is not None), ""), str) else ' class="n"'
