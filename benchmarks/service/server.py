"""The service in a process of its own, with an empty endpoint that shows the upper bound of the HTTP server."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from api import app, data_folder, settings
from api.accounts import keys
from api.server import http_server, memory, serve
from warehouse.control import database, projects

PROJECT = "bench"
EMPTY = "/empty"
HITS = f"/v1/analytics/{PROJECT}/hits"
VIEWS = f"/v1/analytics/{PROJECT}/views"
READY_S = 60
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Server:
    """A running service: its address, API key, process id and data folder."""

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
        """Return the resident memory of the process, in MiB."""
        return self._memory_mib("VmRSS")

    def peak_mib(self) -> float:
        """Return the maximum of the resident memory since `reset_peak`, in MiB."""
        return self._memory_mib("VmHWM")

    def reset_peak(self) -> None:
        """Reset the maximum of the resident memory: https://docs.kernel.org/filesystems/proc.html, `clear_refs`."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _memory_mib(self, name: str) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition(f"{name}:")[2].split()[0]) / 1024

    def cpu_s(self) -> float:
        """Return the CPU time of the process in all its threads, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_loaded(self) -> None:
        """Wait until fewer hits wait in the hot log than are due for a load, so that no post is refused."""
        while True:
            text = httpx.get(f"{self.url}/metrics", timeout=READY_S).text
            if float(text.rpartition("readership_waiting_hits ")[2].split()[0]) < settings.Settings.load_rows:
                return
            time.sleep(0.1)


async def empty(request: Request) -> Response:
    return Response(status_code=202)


def main(data: str, fileno: str) -> None:
    """Run the service: `python -m benchmarks.service.server DATA FILENO`."""
    os.environ["READERSHIP_DATA"] = data
    http_server.run(with_empty, socket.socket(fileno=int(fileno)), settings.read(os.environ))


def with_empty() -> ASGIApp:
    config = settings.read(os.environ)
    http_server.configure_process(config.log_level)
    return app.create(config, (Route(EMPTY, empty, methods=["POST"]), *app.ROUTES))


@contextmanager
def running(
    data: Path | None = None, cache_mib: int = settings.Settings.cache_mib, variables: Mapping[str, str] = NO_VARIABLES
) -> Iterator[Server]:
    """Yield a service with the folder `data`, or with a temporary folder. `variables` are those of its environment."""
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        folder = data or Path(scratch) / "data"
        key = create_key(folder, variables)
        listener = serve.listen("127.0.0.1", 0)
        host, port = listener.getsockname()
        command = [sys.executable, "-m", "benchmarks.service.server", str(folder), str(listener.fileno())]
        environ = {**os.environ, **memory.CHOICES, "READERSHIP_CACHE_MIB": str(cache_mib), **variables}
        with subprocess.Popen(command, env=environ, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL) as process:
            listener.close()
            server = Server(host, port, key, process.pid, folder)
            try:
                httpx.get(f"{server.url}/readyz", timeout=READY_S).raise_for_status()
                yield server
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(READY_S)
                finally:
                    process.kill()  # no effect on a process that has ended


def create_key(data: Path, variables: Mapping[str, str] = NO_VARIABLES) -> str:
    config = settings.read(variables, data)
    data_folder.prepare(config)
    engine = database.connect(config.database_url)
    if not projects.list_all(engine):
        projects.create(engine, PROJECT, (), int(time.time()))
    token = keys.create(engine, PROJECT, "benchmark", "write", None, int(time.time()))[1]
    engine.close()
    return token


if __name__ == "__main__":
    main(*sys.argv[1:])
