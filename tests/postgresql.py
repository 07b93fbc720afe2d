"""A PostgreSQL server for tests, on a Unix socket, with fsync off."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from tests.programs import find
from tests.waiting import until

ACCOUNT = "postgres"
"""User that runs the server if the tests run as root, which PostgreSQL refuses."""
OPTIONS = "-c listen_addresses= -c fsync=off -c shared_buffers=16MB -c max_connections=200"


@contextmanager
def server() -> Iterator[str]:
    """Run a server, and yield the folder of its socket."""
    initdb = find("initdb")
    assert initdb is not None
    programs = initdb.parent
    folder = Path(tempfile.mkdtemp(prefix="readership-postgresql-"))
    as_account: list[str] = []
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam(ACCOUNT).pw_uid, -1)
        as_account = ["setpriv", f"--reuid={ACCOUNT}", "--clear-groups", "--"]
    made = [*as_account, initdb, "-D", folder / "data", "-U", ACCOUNT, "-A", "trust", "--no-sync"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder)
    options = [part for part in OPTIONS.split(" ") if part]
    argv = [*as_account, programs / "postgres", "-D", folder / "data", "-k", folder, *options]
    with (folder / "log").open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log, cwd=folder) as process:
        try:
            until(lambda: _answers(programs, folder), within_s=60)
            yield str(folder)
        finally:
            process.terminate()
            process.wait(60)
            shutil.rmtree(folder, ignore_errors=True)


def _answers(programs: Path, folder: Path) -> bool:
    return subprocess.run([programs / "pg_isready", "-h", folder], capture_output=True, check=False).returncode == 0


def new_database(folder: str) -> str:
    """Create an empty database, and return its SQLAlchemy URL."""
    name = f"test_{uuid.uuid4().hex}"
    engine = sa.create_engine(url(folder, ACCOUNT), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url(folder, name)


def url(folder: str, database: str) -> str:
    return f"postgresql+psycopg://{ACCOUNT}@/{database}?host={folder}"
