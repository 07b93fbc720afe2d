"""Ranges and results of the reports of every peer."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

ROWS = 50
"""Number of rows of a page, the default of the API."""


@dataclass(frozen=True, slots=True)
class Range:
    """Whole UTC days of a report; `end` is the day after the last."""

    start: date
    end: date


Page = list[tuple[str, int]]
"""Paths of a page with their views by people and AI agents, in order."""


class Peer(Protocol):
    """A program that counts views."""

    name: str

    def page(self, range: Range) -> tuple[float, Page]:
        """Return the time of the first page of the large project, in ms, and the page."""

    def series(self, range: Range) -> tuple[float, int]:
        """Return the time of the views of each day, in ms, and the sum of the views."""

    def close(self) -> None:
        """End the program."""


def hits_files(data: Path) -> str:
    """Return the pattern of the Parquet files of `hits` in a generated lake, which has no other files."""
    return str(data / "lake" / "hits" / "date=*" / "*.parquet")
