"""A report before it has a format: sections of notes, tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from reward_gateway.studies.plots import Curve, write_plot

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` are as wide as `headers`. Text may be a stranger's; the formats escape it."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    note: str
    table: Table
    plots: Sequence[Curve] = ()


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    about: str
    sections: Sequence[Section]

    def as_json(self) -> Mapping[str, object]:
        """Titles, headers and rows, for a script."""
        return {
            "title": self.title,
            "sections": [
                {"title": s.title, "headers": list(s.table.headers), "rows": [list(row) for row in s.table.rows]}
                for s in self.sections
            ],
        }


@dataclass
class Charts:
    """The plots of sections as SVG text. `missing` says why there are none. Raises `OSError`."""

    missing: str | None = None
    drawn: dict[str, str] = field(default_factory=dict)

    def draw(self, section: Section) -> str | None:
        """The SVG of a section, or None where it has no plot or none can be drawn."""
        from reward_gateway.studies.plots import PlotError

        if not section.plots or self.missing is not None:
            return None
        with TemporaryDirectory(prefix="lean-reward-report-") as folder:
            path = Path(folder) / "plot.svg"
            try:
                write_plot(path, section.plots)
            except PlotError as error:
                self.missing = str(error)
                return None
            return path.read_text(encoding="utf-8")


def text(cell: Cell) -> str:
    """Fractions with three digits, counts with separators, a dash for what is not known."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return f"{cell:,}" if isinstance(cell, int) else cell
