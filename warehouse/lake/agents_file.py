"""The file of the known AI agents beside the lake's tables: the one file of a data folder that is no database."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse import disk
from warehouse.schema import AGENTS

AGENTS_FILE = "agents.parquet"


def write_agents(root: Path, rows: list[dict[str, str]]) -> None:
    """Bring the file of AI agents beside the tables up to date; a reader sees it whole, before or after.

    One process at a time: see `write_lock`.
    """
    made = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, AGENTS), made)
    content = made.getvalue().to_pybytes()
    file = root / AGENTS_FILE
    if not file.exists() or file.read_bytes() != content:
        disk.write(file, content)
