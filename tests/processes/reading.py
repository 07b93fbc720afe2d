"""The tables as read by deltalake and pyarrow alone, without the package `warehouse`."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable


def table(data: Path, name: str) -> pa.Table:
    """Return a table of the lake at its newest version, without the rows of the hot log."""
    return DeltaTable(str(data / "lake" / name)).to_pyarrow_table()


def hits(data: Path) -> Counter[str]:
    """Return the number of rows of `hits` by path."""
    return Counter(table(data, "hits")["path"].to_pylist())


def events(data: Path) -> Counter[str]:
    """Return the number of rows of `events` by name."""
    return Counter(table(data, "events")["name"].to_pylist())
