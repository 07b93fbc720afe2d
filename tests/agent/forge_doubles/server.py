"""HTTP server of a forge double.

A request with a path, parameter or field that is not in the documentation of the forge gets status 400 and is recorded
in `faults`. A test fails if there are faults at its end.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.agent.forge_doubles import gitea, github, gitlab
from tests.agent.forge_doubles.double import API, Fault, ForgeDouble, ForgeKind, Request, Response, require
from tests.agent.servers.listening import Listening

RESPOND = {"github": github.respond, "gitlab": gitlab.respond, "gitea": gitea.respond}


@contextmanager
def forge_double(kind: ForgeKind, **options: Any) -> Iterator[ForgeDouble]:
    """Run the double of a forge; `options` are fields of ForgeDouble."""
    double = ForgeDouble(kind, **options)

    class Handler(_Handler):
        forge = double

    with Listening(("127.0.0.1", 0), Handler) as listening:
        double.url = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield double
        finally:
            listening.shutdown()
            thread.join()
    assert double.faults == []


class _Handler(BaseHTTPRequestHandler):
    forge: ForgeDouble
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def log_message(self, *arguments: object) -> None:
        """Print nothing; tests read `requests`."""

    def _respond(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.forge.requests.append((self.command, self.path, headers))
        try:
            status, body, more = self.forge.upsets.pop(0) if self.forge.upsets else self._routed(content, headers)
        except Fault as fault:
            self.forge.faults.append(f"{self.command} {self.path}: {fault}")
            status, body, more = 400, {"message": str(fault)}, {}
        if status == 0:
            self.close_connection = True
            return
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _routed(self, content: bytes, headers: dict[str, str]) -> Response:
        parts = urlsplit(self.path)
        base = f"{self.forge.under}{API[self.forge.kind]}/"
        require(parts.path.startswith(base), "not under the API")
        require(headers.get("user-agent", ""), "no User-Agent")
        query = parse_qsl(parts.query, strict_parsing=True) if parts.query else []
        require(len(dict(query)) == len(query), "a parameter comes twice")
        if self.command == "POST":
            require(headers.get("content-type") == "application/json", "not JSON")
        segments = [unquote(each) for each in parts.path.removeprefix(base).split("/")]
        request = Request(self.command, segments, dict(query), headers, json.loads(content) if content else None)
        return RESPOND[self.forge.kind](self.forge, request)
