"""PostgreSQL and the object store, which can be unreachable for a while."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.processes.ports import held_port
from tests.stores import object_store
from tests.stores.outage import Way
from tests.stores.postgresql import Server, new_database

SYNCED = "-c listen_addresses= -c shared_buffers=64MB -c max_connections=200"
"""Options of the server, with fsync on, which is its default."""
LAKE_KEY = int.from_bytes(b"lake")
"""Key of the advisory lock of the lake."""
_HOLDER = (
    "SELECT application_name, pid FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND objid = %s"
)


@dataclass(frozen=True)
class Stores:
    """One PostgreSQL server and one lake. `way` is the nodes' way to the object store; None for a lake in a folder.

    `direct` is the environment of this process, which does not use `way`.
    """

    server: Server
    database_url: str
    environ: dict[str, str]
    direct: dict[str, str]
    way: Way | None

    def lock_holder(self) -> tuple[str, int] | None:
        """Return the application name and the server process of the connection that has the lake's lock."""
        try:
            with psycopg.connect(self._libpq_url, autocommit=True) as connection:
                row = connection.execute(_HOLDER, (LAKE_KEY,)).fetchone()
        except psycopg.OperationalError:  # the server is starting after a crash
            return None
        return (row[0], row[1]) if row else None

    def revoke_lock(self) -> str | None:
        """Close the connection with the lake's lock, as PostgreSQL does if it is silent for long; return its name."""
        if (holder := self.lock_holder()) is None:
            return None
        with psycopg.connect(self._libpq_url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (holder[1],))
        return holder[0]

    @property
    def _libpq_url(self) -> str:
        return self.database_url.replace("+psycopg", "")


@contextmanager
def running(folder: Path, *, is_remote: bool) -> Iterator[Stores]:
    """Yield the stores. A lake that is not remote is in `folder`."""
    with ExitStack() as stack:
        server = stack.enter_context(Server.running(SYNCED))
        url = new_database(server.folder)
        environ = {"READERSHIP_DATABASE_URL": url}
        if not is_remote:
            (folder / "lake").mkdir()
            yield Stores(server, url, environ, {}, None)
            return
        store = stack.enter_context(object_store.server())
        address = urlsplit(store)
        assert address.hostname is not None
        assert address.port is not None
        port = stack.enter_context(held_port())
        way = Way((address.hostname, address.port), ("127.0.0.1", port))
        way.restore()
        stack.callback(way.cut)
        environ["READERSHIP_LAKE"] = f"{object_store.new_bucket(store)}/lake"
        environ |= object_store.environ(f"http://127.0.0.1:{port}")
        yield Stores(server, url, environ, object_store.environ(store), way)
