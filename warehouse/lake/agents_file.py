"""Parquet file of the known AI agents, in the lake's folder beside the tables."""

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import AgentsDamaged
from warehouse.lake import roots
from warehouse.lake.roots import Root
from warehouse.schema import AGENTS

AGENTS_FILE = "agents.parquet"


def read(root: Root) -> pa.Table:
    """Return the AI agents. Raises AgentsDamaged if the file is not Parquet."""
    file = root / AGENTS_FILE
    try:
        return pq.read_table(pa.BufferReader(file.read_bytes()))
    except (pa.ArrowException, OSError):
        raise AgentsDamaged(f"{file} cannot be read; readership sql writes it again") from None


def write_agents(root: Root, rows: list[dict[str, str]]) -> None:
    """Write the AI agents if they differ from the file. A reader sees the old file or the new one, never a part.

    The caller has the lake's `write_lock`.
    """
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, AGENTS), buffer)
    roots.write_changed(root / AGENTS_FILE, buffer.getvalue().to_pybytes())
