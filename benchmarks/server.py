"""The service in a process of its own, with one empty endpoint more: what the server itself can do at most."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from api import app, data_folder, keys, settings
from api.server import serve
from warehouse.control import database, projects

PROJECT = "bench"
EMPTY = "/empty"
HITS = f"/v1/analytics/{PROJECT}/hits"
VIEWS = f"/v1/analytics/{PROJECT}/views"
READY_S = 60


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens, its key, its process and its data."""

    host: str
    port: int
    key: str
    pid: int
    data: Path

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def resident_mib(self) -> float:
        """Resident memory of the process now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    def cpu_s(self) -> float:
        """Processor seconds the process has used, in all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_loaded(self) -> None:
        """Return when fewer hits wait in the hot log than one load takes, so that none is turned away."""
        while True:
            text = httpx.get(f"{self.url}/metrics", timeout=READY_S).text
            if float(text.rpartition("readership_waiting_hits ")[2].split()[0]) < settings.Settings.load_rows:
                return
            time.sleep(0.1)


async def empty(request: Request) -> Response:
    return Response(status_code=202)


def main(data: str, fileno: str) -> None:
    """The process: `python -m benchmarks.server DATA FILENO`."""
    os.environ["READERSHIP_DATA"] = data
    serve.run(with_empty, socket.socket(fileno=int(fileno)), settings.read(os.environ))


def with_empty() -> ASGIApp:
    chosen = settings.read(os.environ)
    serve.settle(chosen.log_level)
    return app.create(chosen, (*app.ROUTES, Route(EMPTY, empty, methods=["POST"])))


@contextmanager
def running(data: Path | None = None) -> Iterator[Server]:
    """A service over `data`, or over a new folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        folder = data or Path(scratch) / "data"
        key = key_of(folder)
        listener = serve.listen("127.0.0.1", 0)
        host, port = listener.getsockname()
        command = [sys.executable, "-m", "benchmarks.server", str(folder), str(listener.fileno())]
        with subprocess.Popen(command, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL) as process:
            listener.close()
            made = Server(host, port, key, process.pid, folder)
            try:
                httpx.get(f"{made.url}/readyz", timeout=READY_S).raise_for_status()
                yield made
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(READY_S)


def key_of(data: Path) -> str:
    chosen = settings.read({}, data)
    data_folder.prepare(chosen)
    engine = database.connect(chosen.database_url)
    if not projects.list_all(engine):
        projects.create(engine, PROJECT, (), int(time.time()))
    token = keys.create(engine, PROJECT, "benchmark", "write", None, int(time.time()))[1]
    engine.dispose()
    return token


if __name__ == "__main__":
    main(*sys.argv[1:])
