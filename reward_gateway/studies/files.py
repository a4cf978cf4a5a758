"""Cohorts as Parquet. Needs the extra `studies` (pyarrow)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reward_gateway.studies.cohort import CohortError
from reward_gateway.studies.schema import COLUMNS, VERSION, VERSION_KEY

if TYPE_CHECKING:
    import pyarrow as pa

NEEDS = "needs pyarrow: install lean-reward[studies]"

Row = Mapping[str, Any]


def arrow_schema() -> pa.Schema:
    """The columns as an Arrow schema, with their meaning as metadata."""
    import pyarrow as pa

    kinds = {
        "text": pa.string(),
        "word": pa.dictionary(pa.int16(), pa.string()),
        "count": pa.int32(),
        "number": pa.float64(),
        "flag": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "numbers": pa.list_(pa.float32()),
    }
    fields = [pa.field(c.name, kinds[c.kind], nullable=c.optional, metadata={"meaning": c.meaning}) for c in COLUMNS]
    return pa.schema(fields, metadata={VERSION_KEY: str(VERSION)})


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows to a new file that is whole or absent, and on the disk when this returns. Raises `OSError`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(list(rows), schema=arrow_schema())
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, or of every `*.parquet` file of a folder, in the order of their batches.

    Raises:
        CohortError: nothing is there, a file is no cohort or of a version that is not known here, or a row holds what
            has no meaning.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise CohortError(f"{path}: a recorded cohort {NEEDS}") from None
    if not path.exists():
        raise CohortError(f"there is no file or folder {path}")
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise CohortError(f"{path} holds no *.parquet file")
    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            table = pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            raise CohortError(f"cannot read {file}: {error}") from None
        version = (table.schema.metadata or {}).get(VERSION_KEY)
        if version is None:
            raise CohortError(f"{file} is no recorded cohort: its metadata does not say {VERSION_KEY.decode()}")
        if version != str(VERSION).encode():
            raise CohortError(f"{file} has version {version.decode(errors='replace')}; this release reads {VERSION}")
        missing = [column.name for column in COLUMNS if column.name not in table.column_names]
        if missing:
            raise CohortError(f"{file} lacks the columns {', '.join(missing)}")
        found = table.to_pylist()
        _check(found, file)
        rows += found
    ordered = sorted(rows, key=_place)
    for one, other in pairwise(ordered):
        if _place(one) == _place(other):
            raise CohortError(f"{path} holds candidate {one['index']} of batch {one['batch']} twice")
    return ordered


def _place(row: Row) -> tuple[Any, ...]:
    return row["received_at"], row["batch"], row["index"]


def _check(rows: Sequence[Row], file: Path) -> None:
    """Raises `CohortError` for the first value of a column that is none of that column's."""
    for column in COLUMNS:
        words = None if column.words is None else {word.value for word in column.words}
        for number, row in enumerate(rows, start=1):
            value = row[column.name]
            if value is None:
                right = column.optional
            elif column.kind == "number":
                right = isinstance(value, float | int) and 0 <= value < math.inf
            else:
                right = words is None or value in words
            if not right:
                raise CohortError(f"{file}, row {number}: {column.name} is {value!r}")
