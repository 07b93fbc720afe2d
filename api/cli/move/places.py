"""Old and new places of the stores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from api import settings
from api.errors import InvalidSetting
from api.settings import Settings
from warehouse import folder
from warehouse.database.url import POSTGRESQL
from warehouse.errors import MoveRefused
from warehouse.folder import LAKE, Moved
from warehouse.hotlog.connection import Server, server_of
from warehouse.lake.delta_table import is_table
from warehouse.lake.remote.object_path import ObjectPath
from warehouse.lake.roots import LocalPath, Root
from warehouse.tables import HITS_TABLE

DATABASE_URL, LAKE_URI = "READERSHIP_DATABASE_URL", "READERSHIP_LAKE"
_LAKES = ("s3://", "gs://", "az://")


@dataclass(frozen=True, slots=True)
class Places:
    """Settings of a service before and after the move.

    `server` is the new place of the hot log and the control database, and `lake` that of the lake; None if they stay.
    """

    before: Settings
    after: Settings
    server: Server | None
    lake: ObjectPath | None

    def record(self, node: str, *, is_complete: bool) -> Moved:
        database = self.server.database if self.server else None
        return Moved(node, database, self.after.lake.uri, is_complete)

    def is_recorded(self, earlier: Moved) -> bool:
        """Return whether an earlier move was one to the same places."""
        return self.record(earlier.node, is_complete=earlier.is_complete) == earlier


def choose(environ: Mapping[str, str], now: Settings, to: Sequence[str]) -> Places:
    """Return the places of a move to the URLs `to`, or to those of the environment if `to` is empty.

    Without a lake in the data folder, or after a move of the lake, READERSHIP_LAKE is the place where the lake is
    already.

    Raises:
        InvalidSetting: a URL is malformed, or two name the same kind of place, or there is none.
        MoveRefused: a store is not in the data folder.
    """
    named = _variables(to)
    after = settings.read({**environ, **named}, now.data, is_moving=True)
    server = server_of(after.database_url) if DATABASE_URL in (named or environ) else None
    lake = after.lake if LAKE_URI in (named or environ) and isinstance(after.lake, ObjectPath) else None
    if DATABASE_URL in named and server is None:
        raise InvalidSetting("a database to move to must be a URL such as postgresql://user@host/database")
    local = LocalPath(now.data / LAKE)
    if lake is not None and not is_table(local / HITS_TABLE.name):
        if LAKE_URI in named:
            raise MoveRefused(f"there is no lake in {local}")
        lake = None
    if server is not None and _is_moved(now, lake):
        lake = None
    if server is None and lake is None:
        raise InvalidSetting(
            f"name the new places with --to, or with {DATABASE_URL} and {LAKE_URI}, such as "
            "--to postgresql://user@host/database and --to s3://bucket/prefix"
        )
    return Places(_before(now, server, local if lake else after.lake), after, server, lake)


def _is_moved(now: Settings, lake: ObjectPath | None) -> bool:
    """Return whether an earlier move has moved the lake, without the databases, to this place."""
    moved = folder.read_moved(now.data)
    return moved is not None and moved.is_complete and (moved.database, moved.lake) == (None, str(lake))


def _variables(to: Sequence[str]) -> dict[str, str]:
    """Return the URLs as values of the variables of a service. No message quotes a URL, which may have a password."""
    named: dict[str, str] = {}
    for url in to:
        name = DATABASE_URL if url.startswith(POSTGRESQL) else LAKE_URI
        if name == LAKE_URI and not url.startswith(_LAKES):
            raise InvalidSetting(f"--to must be a URL of postgresql:// or of {', '.join(_LAKES)}")
        if name in named:
            raise InvalidSetting("--to names two databases, or two object stores")
        named[name] = url
    return named


def _before(now: Settings, server: Server | None, lake: Root) -> Settings:
    """Return the settings with which the stores are read before the move."""
    url = now.database_url
    if server is not None and (used := server_of(url)) is not None:
        if used.url != server.url:
            raise MoveRefused(f"{DATABASE_URL} and --to are different databases, and only files can be moved")
        url = settings.read({}, now.data, is_moving=True).database_url
    return replace(now, database_url=url, lake=lake)
