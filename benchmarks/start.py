"""Seconds from a command to the first accepted hit, to the first chart, and to the first own view on a chart.

The goal of the first is 2 s. The others are the way of a newcomer by the steps of the README, without the time that a
person needs:

- `make run` in a new clone of this checkout, until the page behind the printed link has a chart. The packages come
  from the caches of pip and uv, if these have them.
- `serve` on an empty folder, the printed link, a name and a password, a project, and a view by its website script,
  until the overview has a chart and the path of the view.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from api.server import serve
from benchmarks.measure import RUNS, Measured, record
from benchmarks.service import server

ROOT = Path(__file__).parent.parent
COMMAND = str(Path(sys.executable).parent / "readership")
DEADLINE_S = 600
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
"""Header of the browser for a form that a page of the dashboard posts."""
SITE, PATH = "https://site.example", "/first-page"
PERSON = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"
_LINK = re.compile(r"(http://[^/\s]+)/welcome/[\w/?=-]+")
_CHART = '<svg class="time-chart"'


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as scratch:
        data = Path(scratch) / "data"
        key = server.create_key(data)
        record("start", [Measured("start to first accepted hit", "s", [_start(data, key) for _ in range(RUNS)])])
        folders = [Path(scratch) / str(run) for run in range(RUNS)]
        shown = Measured("make run to the first chart", "s", [first_chart(folder / "clone") for folder in folders])
        seen = Measured("empty folder to the first own view", "s", [first_view(folder / "data") for folder in folders])
        record("newcomer", [shown, seen])


def first_chart(clone: Path) -> float:
    """Return the seconds from `make run` in a new clone to the page behind its link, with a chart."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    began = time.perf_counter()
    with _started(["make", "run", "ARGS=--port 0"], clone, clone.parent / "make.log") as link, _client(link) as client:
        page = _sent(client.post(link, headers=OWN_PAGE))
        assert _CHART in page.text, page.text
        return time.perf_counter() - began


def first_view(data: Path) -> float:
    """Return the seconds from `serve` on an empty folder to the overview with a chart and the first view."""
    data.parent.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    command = [COMMAND, "--data", str(data), "serve", "--port", "0"]
    with _started(command, data.parent, data.parent / "serve.log") as link, _client(link) as client:
        owner = {"name": "Ada", "new_password": "correct horse", "repeated": "correct horse"}
        _sent(client.post(link, data=owner, headers=OWN_PAGE))
        setup = _sent(client.post("/projects", data={"id": "site", "origin": SITE}, headers=OWN_PAGE))
        assert "beacon.js" in setup.text, setup.text
        beacon = {"Origin": SITE, "User-Agent": PERSON}
        _sent(client.post("/v1/analytics/site/hits", json={"url": SITE + PATH}, headers=beacon))
        page = _sent(client.get("/projects/site"))
        assert _CHART in page.text, page.text
        assert f">{PATH.replace('-', '-<wbr>')}<" in page.text.replace("/<wbr>", "/"), page.text
        return time.perf_counter() - began


def _start(data: Path, key: str) -> float:
    port = _free_port()
    began = time.perf_counter()
    with subprocess.Popen(
        [COMMAND, "--data", str(data), "serve", "--port", str(port)], stderr=subprocess.DEVNULL
    ) as process:
        while not _is_accepted(port, key):
            assert time.perf_counter() - began < DEADLINE_S
        took = time.perf_counter() - began
        process.terminate()
        process.wait(DEADLINE_S)
    return took


def _free_port() -> int:
    listener = serve.listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    listener.close()
    return port


def _is_accepted(port: int, key: str) -> bool:
    hit = {"path": "/", "userAgent": "GPTBot/1.3"}
    try:
        answer = httpx.post(
            f"http://127.0.0.1:{port}{server.HITS}",
            json=hit,
            headers={"Authorization": f"Bearer {key}"},
            timeout=DEADLINE_S,
        )
    except httpx.TransportError:
        return False
    return answer.status_code == 202


def _client(link: str) -> httpx.Client:
    """Return a client of the service that printed the link."""
    match = _LINK.match(link)
    assert match is not None
    return httpx.Client(base_url=match[1], follow_redirects=True, timeout=DEADLINE_S)


def _sent(response: httpx.Response) -> httpx.Response:
    assert response.is_success, response.text
    return response


@contextmanager
def _started(command: list[str], folder: Path, log: Path) -> Iterator[str]:
    """Run a command that serves, and yield the one-time link that it prints. End it with the block."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("READERSHIP_")}
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=folder, env=environ, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            yield _link(process, log)
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _link(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the one-time link in the output of a process, as soon as the link is complete."""
    deadline = time.monotonic() + DEADLINE_S
    while process.poll() is None and time.monotonic() < deadline:
        match = re.search(rf"{_LINK.pattern}(?=[^\w/?=-])", log.read_text())
        if match is not None:
            return match[0]
        time.sleep(0.01)
    raise AssertionError(f"the service printed no link: {log.read_text()}")
