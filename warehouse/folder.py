"""What stands where in a data folder. Nothing here loads a database's library."""

from pathlib import Path
from urllib.parse import quote

HOT_LOG, LAKE, RUN, JOBS, CONTROL = "hot.sqlite", "lake", "run", "jobs", "control.sqlite"


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file, as SQLAlchemy takes it."""
    return f"sqlite:///{quote(str(path))}"
