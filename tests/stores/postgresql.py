"""A PostgreSQL server for tests, on a Unix socket, by default with fsync off."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.processes.waiting import until
from tests.programs import find
from warehouse.control import database

ACCOUNT = "postgres"
"""User that runs the server if the tests run as root, which PostgreSQL refuses."""
OPTIONS = "-c listen_addresses= -c fsync=off -c shared_buffers=16MB -c max_connections=500"

LOCKS = "FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())"
"""The locks of a connection's database: other tests use the server, too."""


class Server:
    """A server in a folder of its own, which also has its Unix socket."""

    def __init__(self, folder: str, options: str) -> None:
        """Create the files of a server that `start` starts."""
        initdb = find("initdb")
        assert initdb is not None
        self.folder, self._programs = folder, initdb.parent
        self._as_account: list[str] = []
        if os.geteuid() == 0:
            os.chown(folder, pwd.getpwnam(ACCOUNT).pw_uid, -1)
            self._as_account = ["setpriv", f"--reuid={ACCOUNT}", "--clear-groups", "--"]
        command = [*self._as_account, initdb, "-D", f"{folder}/data", "-U", ACCOUNT, "-A", "trust", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        self._options = [part for part in options.split(" ") if part]
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def running(cls, options: str) -> Iterator["Server"]:
        """Start a server, and yield it. At the end of the block it is stopped, and its files are deleted."""
        folder = tempfile.mkdtemp(prefix="readership-postgresql-")
        server = cls(folder, options)
        try:
            server.start()
            until(server.answers)
            yield server
        finally:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start the server, without waiting until it answers."""
        options = ["-D", f"{self.folder}/data", "-k", self.folder, *self._options]
        argv = [*self._as_account, self._programs / "postgres", *options]
        with Path(self.folder, "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=self.folder)

    def leave(self) -> int:
        """Return the id of the process, which another process will end."""
        assert self._process is not None
        self._process.returncode = 0  # else Python warns that it still runs
        return self._process.pid

    def answers(self) -> bool:
        argv = [self._programs / "pg_isready", "-h", self.folder]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    def crash(self) -> None:
        """Abort all processes of the server at once. Its next start recovers the committed transactions."""
        self.stop(signal.SIGQUIT)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to the server, and wait for its end."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None


def start(folder: Path) -> tuple[str, int]:
    """Start a server in a folder that exists; return the folder and the id of its process, which does not end."""
    server = Server(str(folder), OPTIONS)
    server.start()
    until(server.answers)
    return server.folder, server.leave()


def new_database(folder: str, template: str = "template1") -> str:
    """Create a database, which is empty or a copy of `template`, and return its URL."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(host=folder, user=ACCOUNT, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return url(folder, name)


@cache
def control_template(folder: str) -> str:
    """Create a control database without content, and return its name. A copy takes 70 ms less than its tables."""
    created = new_database(folder)
    database.connect(created).close()
    return urlsplit(created).path.removeprefix("/")


def url(folder: str, database: str) -> str:
    return f"postgresql://{ACCOUNT}@/{database}?host={folder}"
