"""What stands where in a data folder, and the one file of it that is no database: the known AI agents."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.schema import AGENTS

HOT_LOG, LAKE, RUN = "hot.sqlite", "lake", "run"
AGENTS_FILE = "agents.parquet"
"""Beside the tables of the lake."""


def write_agents(root: Path, rows: list[dict[str, str]]) -> None:
    """Bring the file of AI agents beside the tables up to date; a reader sees it whole, before or after.

    One process at a time: see `lake.locked`.
    """
    made = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, AGENTS), made)
    content = made.getvalue().to_pybytes()
    file, new = root / AGENTS_FILE, root / f"{AGENTS_FILE}.new"
    if not file.exists() or file.read_bytes() != content:
        new.write_bytes(content)
        new.replace(file)
