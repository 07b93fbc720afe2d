"""Names of the files in a data folder. Imports no database library."""

from pathlib import Path
from urllib.parse import quote

HOT_LOG, LAKE, RUN, JOBS, CONTROL, RANGES = "hot.sqlite", "lake", "run", "jobs", "control.sqlite", "ranges"


def sqlite_url(path: Path) -> str:
    """Return SQLAlchemy's URL of a SQLite file."""
    return f"sqlite:///{quote(str(path))}"
