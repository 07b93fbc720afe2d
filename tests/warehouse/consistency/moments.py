"""Helpers of tests that read snapshots of `hits`: a clock, and the rows of a snapshot."""

from tests.warehouse.site import Site, view
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot

NOW_S = 1_788_264_000
"""2026-09-01T12:00:00Z"""


class Clock:
    """Clock of a reader. `now_s` is in seconds since 1970."""

    def __init__(self) -> None:
        self.now_s: float = NOW_S

    def __call__(self) -> float:
        return self.now_s


def hits(site: Site, snapshot: Snapshot) -> list[str]:
    """Return the paths of all rows, read from the files and the hot rows."""
    stored = []
    if snapshot.files:
        with site.database.cursor() as cursor:
            stored = cursor.execute(f"SELECT path FROM {engine.parquet(snapshot.files)}").fetchall()
    return sorted([path for (path,) in stored] + snapshot.hot["path"].to_pylist())


def paths(*numbers: int) -> list[str]:
    return [f"/{number}" for number in numbers]


def post(site: Site, *numbers: int) -> None:
    """Commit one batch, with one hit for each number."""
    site.post(*(view(path) for path in paths(*numbers)))
