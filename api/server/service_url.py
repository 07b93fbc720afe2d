"""The URL at which the running service of a data folder listens, in a file of the run folder.

Commands print the URL as a part of links. The file of a service that was killed remains until the next service starts.
"""

from contextlib import suppress
from pathlib import Path

FILE = "service.url"


def write(run: Path, url: str) -> None:
    """Store the URL of a service that starts."""
    with suppress(OSError):  # a full disk must not prevent the start, and the URL is only for messages
        (run / FILE).write_text(url, encoding="utf-8")


def delete(run: Path) -> None:
    """Delete the URL of a service that has ended."""
    with suppress(OSError):
        (run / FILE).unlink(missing_ok=True)


def read(run: Path) -> str | None:
    """Return the URL of the running service, or None."""
    try:
        return (run / FILE).read_text(encoding="utf-8") or None
    except FileNotFoundError:
        return None
