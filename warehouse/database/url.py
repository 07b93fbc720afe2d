"""URLs of databases: `sqlite:///PATH` and `postgresql://...`."""

from urllib.parse import parse_qs, unquote, urlsplit

POSTGRESQL = ("postgresql://", "postgres://", "postgresql+psycopg://")
SQLITE = "sqlite:///"


def libpq_url(url: str) -> str | None:
    """Return the URL of a PostgreSQL database as libpq reads it; None for another URL."""
    rests = (url.removeprefix(scheme) for scheme in POSTGRESQL if url.startswith(scheme))
    return next((f"postgresql://{rest}" for rest in rests), None)


def sqlite_name(url: str) -> str | None:
    """Return the path of a SQLite file, or the URI `file:...` in its URL; None for another URL."""
    name = url.removeprefix(SQLITE)
    if name == url:
        return None
    return name if name.startswith("file:") else unquote(name.partition("?")[0])


def name_of(url: str) -> str:
    """Return the path of a SQLite file, or the name and host of a database on a server, without its password."""
    if (file := sqlite_name(url)) is not None:
        return file.removeprefix("file:").partition("?")[0] if file.startswith("file:") else file
    parts = urlsplit(url)
    host = parts.hostname or parse_qs(parts.query).get("host", ["localhost"])[0]
    return f"database {unquote(parts.path.removeprefix('/'))} on {host}"
