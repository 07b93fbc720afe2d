"""What stands where in a data folder. Nothing here loads a database's library."""

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.schema import AGENTS

HOT_LOG, LAKE, RUN, JOBS = "hot.sqlite", "lake", "run", "jobs"
AGENTS_FILE = "agents.parquet"
"""Beside the tables of the lake."""


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file, as SQLAlchemy takes it."""
    return f"sqlite:///{quote(str(path))}"
