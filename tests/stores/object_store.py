"""S3 servers on loopback: moto's, and one that lets every writer create an object."""

import re
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from tests.processes.waiting import until

SECRET = "sEcReT-of-the-tests"


def environ(url: str) -> dict[str, str]:
    """Return the environment in which obstore and delta-rs use a server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a new moto server, which keeps its objects in memory."""
    with tempfile.TemporaryDirectory() as folder, logging_server(Path(folder) / "log") as url:
        yield url


@contextmanager
def logging_server(log: Path) -> Iterator[str]:
    """Yield the URL of a new moto server that writes its requests to `log`."""
    process = _process(log)
    try:
        yield _url(log)
    finally:
        process.terminate()
        process.wait()


def start(folder: Path) -> tuple[str, int]:
    """Start a moto server with its log in a folder; return its URL and the id of its process, which does not end."""
    process = _process(folder / "log")
    url = _url(folder / "log")
    process.returncode = 0  # else Python warns that it still runs
    return url, process.pid


def _process(log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with log.open("w") as file:
        return subprocess.Popen(command, stdout=file, stderr=file)


def _url(log: Path) -> str:
    return until(lambda: re.search(r"Running on (http://[\d.:]+)", log.read_text()))[1]


def new_bucket(url: str) -> str:
    """Create a bucket, and return its URI."""
    name = f"lake-{uuid.uuid4().hex[:12]}"
    assert httpx.put(f"{url}/{name}", timeout=60).status_code == 200
    return f"s3://{name}"


class _Forwarding(BaseHTTPRequestHandler):
    """Handler that forwards a request to the server of `client`, without the headers of `removed`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # or the body is sent after the headers, and waits 40 ms for their acknowledgement
    client: httpx.Client
    removed: frozenset[str]
    on_request: Callable[[str, str], None]

    def _forward(self) -> None:
        type(self).on_request(self.command, self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        ours = {"host", "connection", *self.removed}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ours}
        answer = self.client.request(self.command, self.path, content=body, headers=headers)
        self.send_response(answer.status_code)
        for name in {"etag", "last-modified", "content-type"} & answer.headers.keys():
            self.send_header(name, answer.headers[name])
        is_head = self.command == "HEAD"
        self.send_header("Content-Length", answer.headers["content-length"] if is_head else str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815  # the names that the base class calls

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def unsafe_server(to: str) -> Iterator[str]:
    """Yield the URL of a proxy to a server that ignores the conditions of writes, as some S3-compatible stores do."""
    with _proxy(to, frozenset({"if-none-match"}), lambda method, path: None) as url:
        yield url


@contextmanager
def watched_server(to: str, on_request: Callable[[str, str], None]) -> Iterator[str]:
    """Yield the URL of a proxy to a server that calls `on_request` with the method and path of each request."""
    with _proxy(to, frozenset(), on_request) as url:
        yield url


@contextmanager
def _proxy(to: str, removed: frozenset[str], on_request: Callable[[str, str], None]) -> Iterator[str]:
    with httpx.Client(base_url=to, verify=False) as client:
        names = {"client": client, "removed": removed, "on_request": staticmethod(on_request)}
        with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Forwarding,), names)) as http:
            thread = threading.Thread(target=http.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{http.server_port}"
            finally:
                http.shutdown()
                thread.join()
