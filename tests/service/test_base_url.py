"""The links of a service behind a proxy that removes a path prefix lead to the service."""

import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes.running import PROJECT, Running, new_job

PREFIX = "/stats"
CLOSED = ("/metrics", "/readyz")
DOCS = Path(__file__).parents[2] / "docs" / "running.md"


class Proxy(ThreadingHTTPServer):
    """A reverse proxy for PREFIX, as docs/running.md configures nginx: it removes the prefix and closes two paths."""

    service = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{PREFIX}"


class Forward(BaseHTTPRequestHandler):
    server: Proxy

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.removeprefix(PREFIX)
        if not self.path.startswith(f"{PREFIX}/") or path in CLOSED:
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        answer = httpx.request(self.command, f"{self.server.service}{path}", headers=headers, content=body)
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name not in {"content-length", "content-encoding", "transfer-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_POST = do_GET  # noqa: N815  # the base class calls it by this name


@contextmanager
def proxied() -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", 0), Forward) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()


@pytest.fixture
def proxy(start: Callable[..., Running]) -> Iterator[tuple[Proxy, Running]]:
    with proxied() as prefixed:
        service = start(READERSHIP_BASE_URL=f"{prefixed.url}/", READERSHIP_JOBS_AT_ONCE="0")
        prefixed.service = service.url
        yield prefixed, service


@pytest.mark.long
@pytest.mark.needs("curl")
def test_urls_in_responses_work_behind_a_prefix(proxy: tuple[Proxy, Running]) -> None:
    prefixed, service = proxy
    page, sending, service_page = (httpx.get(f"{prefixed.url}/docs{path}").text for path in ("", "/send", "/service"))
    assert f"curl {prefixed.url}/healthz" in service_page
    ran = subprocess.run(["curl", "-fsS", f"{prefixed.url}/healthz"], capture_output=True, text=True, check=True)
    assert ran.stdout == '{"status":"ok"}'
    (script,) = re.findall(r'<script defer src="([^"]+beacon.js)"', unescape(sending))
    assert httpx.get(script).headers["content-type"].startswith("text/javascript")
    (link,) = {*re.findall(r'href="([^"]+json)"', page)}
    document = httpx.get(httpx.URL(f"{prefixed.url}/docs").join(link)).json()
    assert document["servers"] == [{"url": prefixed.url}]
    assert httpx.get(f"{document['servers'][0]['url']}/healthz").status_code == 200

    refused = httpx.get(f"{prefixed.url}/v1/analytics/{PROJECT}/views?limit=0", headers=service.auth).json()
    assert refused["type"] == f"{prefixed.url}/docs#invalid-parameter"
    assert httpx.get(f"{prefixed.url}/nowhere").json()["type"] == f"{prefixed.url}/docs#not-found"
    assert refused["type"] in every_type(document)
    assert f'"type": "{prefixed.url}/docs#invalid-parameter"' in unescape(page)

    new_job(service.data)
    created = httpx.post(f"{prefixed.url}/v2/agent/{PROJECT}/job", json={"prompt": "Say hello"}, headers=service.auth)
    assert created.status_code == 201
    assert httpx.get(created.headers["location"], headers=service.auth).json()["id"] == created.json()["id"]


def every_type(document: Any) -> set[str]:
    schema = document["paths"]["/v1/analytics/{projectId}/views"]["get"]["responses"]["400"]["content"]
    return set(schema["application/problem+json"]["schema"]["properties"]["type"]["enum"])


def test_documented_proxy_closes_the_paths_that_need_no_key() -> None:
    snippet = DOCS.read_text().partition("For nginx:")[2].partition("\n\nPages")[0]
    closed = re.findall(rf"location = {PREFIX}(/\w+) {{ return 404; }}", snippet)
    assert tuple(closed) == CLOSED
