"""One PostgreSQL server and one object store for all workers of a run of pytest.

The first test that needs a server starts it, and each test has databases and buckets of its own. The process that has
created the folder of the servers stops them at the end of the run. If it is killed, `tests.processes.ending` ends them.
"""

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

from tests.processes import ending
from tests.stores import object_store, postgresql

FOLDER = "READERSHIP_TEST_STORES"
"""Name of the variable with the folder of the servers. Child processes inherit it."""
END_S = 10
MARK = "mark"
"""File with the mark of the processes of the run, with which its servers are marked, too: they outlive a worker."""


def create() -> bool:
    """Create the folder of the servers, unless a parent process has; return whether it was created."""
    if FOLDER in os.environ:
        return False
    os.environ[FOLDER] = folder = tempfile.mkdtemp(prefix="readership-stores-")
    Path(folder, MARK).write_text(os.environ[ending.MARK])
    Path(folder).chmod(0o711)  # PostgreSQL may run as another user
    return True


def end() -> None:
    """Stop the servers, and delete their folder."""
    folder = Path(os.environ.pop(FOLDER))
    for file in folder.glob("*.pid"):
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(int(file.read_text()))
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if not wait([handle], END_S):  # PostgreSQL waits for its clients
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
    shutil.rmtree(folder, ignore_errors=True)


def postgresql_folder() -> str:
    """Return the folder of the socket of the PostgreSQL server."""
    return _started("postgresql", postgresql.start)


def object_store_url() -> str:
    """Return the URL of the S3 server."""
    return _started("object-store", object_store.start)


def _started(name: str, start: Callable[[Path], tuple[str, int]]) -> str:
    """Return the address of a server, which `start` starts in a folder; it returns the address and the process id."""
    stores = Path(os.environ[FOLDER])
    address, mark = stores / f"{name}.address", os.environ[ending.MARK]
    with (stores / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            folder = Path(tempfile.mkdtemp(dir=stores))
            os.environ[ending.MARK] = (stores / MARK).read_text()
            try:
                text, pid = start(folder)
            finally:
                os.environ[ending.MARK] = mark
            (stores / f"{name}.pid").write_text(str(pid))
            address.write_text(text)
        return address.read_text()
