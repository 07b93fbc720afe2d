"""Real git server for tests: `git http-backend` behind an HTTP server with tokens and configurable faults.

The protocol is https://git-scm.com/docs/http-protocol and the CGI https://git-scm.com/docs/git-http-backend.
"""

import base64
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from tests.agent.servers.listening import Listening
from tests.programs import require

CLEAN = {
    "PATH": os.environ["PATH"],
    "HOME": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Owner",
    "GIT_AUTHOR_EMAIL": "owner@example.com",
    "GIT_COMMITTER_NAME": "Owner",
    "GIT_COMMITTER_EMAIL": "owner@example.com",
}
FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"

Right = Literal["read", "write"]
Entry = tuple[str, bytes]


@dataclass
class GitServer:
    """Server of the repositories in `folder`, at `url/<name>.git`. A request without a token of `tokens` gets 401."""

    folder: Path
    tokens: dict[str, Right] = field(default_factory=lambda: {"git-token": "write"})
    public: bool = False
    url: str = ""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the responses to the next requests, which are not processed."""
    redirects: dict[str, str] = field(default_factory=dict)
    """URL that a repository's path redirects to."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path with query, and token, of each request."""
    redirects_after_token: bool = False
    on_request: Callable[[], object] = lambda: None
    cuts: int = 0
    """Number of pushes that succeed but whose response is lost."""
    echoes: bool = False
    """Whether the response to a refused push repeats the token, as a careless proxy may do."""

    def create(self, name: str, files: dict[str, bytes | Entry] | None = None, branch: str = "main") -> str:
        """Create a repository with one commit, or an empty one without files, and return its URL."""
        path = self.path(name)
        git("init", "--quiet", "--bare", f"--initial-branch={branch}", str(path))
        if files is not None:
            self.commit(name, files, branch)
        return f"{self.url}/{name}.git"

    def commit(self, name: str, files: dict[str, bytes | Entry], branch: str = "main", message: str = "First") -> str:
        """Add a commit by another author to a branch, and return its id. Other files of the branch stay."""
        stream = [b"commit refs/heads/%b\ncommitter Owner <owner@example.com> 1700000000 +0000\n" % branch.encode()]
        stream.append(b"data %d\n%b\n" % (len(message), message.encode()))
        if self.tip(name, branch):
            stream.append(b"from refs/heads/%b^0\n" % branch.encode())
        for file, entry in files.items():
            mode, content = (FILE, entry) if isinstance(entry, bytes) else entry
            quoted = b'"%b"' % os.fsencode(file).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
            if mode == SUBMODULE:
                stream.append(b"M 160000 %b %b\n" % (content, quoted))
            else:
                stream.append(b"M %b inline %b\ndata %d\n%b\n" % (mode.encode(), quoted, len(content), content))
        git("-C", str(self.path(name)), "fast-import", "--quiet", "--force", stdin=b"".join(stream))
        return self.tip(name, branch)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.git"

    def tip(self, name: str, branch: str) -> str:
        """Return the id of the branch's latest commit, or an empty text without the branch."""
        return (
            git("-C", str(self.path(name)), "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
            .decode()
            .strip()
        )

    def branches(self, name: str) -> list[str]:
        return (
            git("-C", str(self.path(name)), "for-each-ref", "--format=%(refname:short)", "refs/heads").decode().split()
        )

    def log(self, name: str, branch: str, form: str = "%s") -> list[str]:
        """Return the commits of a branch, from newest to oldest."""
        return git("-C", str(self.path(name)), "log", f"--format={form}", branch).decode().splitlines()

    def read(self, name: str, branch: str) -> dict[str, Entry]:
        """Return mode and content of each file of a branch; the content of a submodule is its commit."""
        files = {}
        for line in git("-C", str(self.path(name)), "ls-tree", "-r", "-z", branch).split(b"\0")[:-1]:
            described, _, file = line.partition(b"\t")
            mode, kind, object_id = described.decode().split()
            content = (
                object_id.encode()
                if kind == "commit"
                else git("-C", str(self.path(name)), "cat-file", "blob", object_id)
            )
            files[os.fsdecode(file)] = (mode, content)
        return files

    def hook(self, name: str, script: str, kind: str = "pre-receive") -> None:
        """Install a hook, which can refuse a push."""
        path = self.path(name) / "hooks" / kind
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


@contextmanager
def serving(folder: Path) -> Iterator[GitServer]:
    require("git")
    server = GitServer(folder)

    class Handler(_Handler):
        git_server = server

    with Listening(("127.0.0.1", 0), Handler) as listening:
        server.url = f"http://127.0.0.1:{listening.server_port}"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


def git(*arguments: str, stdin: bytes = b"") -> bytes:
    """Run git without the configuration of this machine, and return its output."""
    require("git")
    done = subprocess.run(["git", *arguments], input=stdin, capture_output=True, env=CLEAN, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class _Handler(BaseHTTPRequestHandler):
    git_server: GitServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._respond(b"")

    def do_POST(self) -> None:
        self._respond(self._body())

    def log_message(self, *arguments: object) -> None:
        """Print nothing; tests read `requests`."""

    def _respond(self, body: bytes) -> None:
        server = self.git_server
        token = self._token()
        server.requests.append((self.path, token))
        server.on_request()
        if server.statuses:
            self._send(server.statuses.pop(0), "text/plain", b"out of order")
            return
        parts = urlsplit(self.path)
        repository, _, service = parts.path.partition(".git/")
        if repository in server.redirects and (token or not server.redirects_after_token):
            self._send(301, "text/plain", b"", Location=f"{server.redirects[repository]}/{service}?{parts.query}")
            return
        right = server.tokens.get(token, "read" if server.public and not token else None)
        is_push = "git-receive-pack" in self.path
        if right is None or (is_push and not token):
            self._send(401, "text/plain", b"who are you?", **{"WWW-Authenticate": 'Basic realm="git"'})
        elif not server.path(repository.lstrip("/")).is_dir():
            self._send(404, "text/plain", b"not found")
        elif is_push and right != "write":
            echo = f" Sent: {self.headers['Authorization']} and {token}." if server.echoes else ""
            self._send(403, "text/plain", f"Write access to repository not granted.{echo}".encode())
        else:
            self._run(parts.path, parts.query, body)

    def _token(self) -> str:
        scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
        _, _, token = base64.b64decode(encoded).decode().partition(":")
        return token if scheme == "Basic" else ""

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _run(self, path: str, query: str, body: bytes) -> None:
        """Run the CGI program and send its response."""
        environ = {
            **CLEAN,
            "GIT_PROJECT_ROOT": str(self.git_server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "somebody",
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, capture_output=True, env=environ, timeout=60, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(headers.pop("Status", "200").split()[0])
        if self.command == "POST" and path.endswith("git-receive-pack") and self.git_server.cuts and len(body) > 4:
            self.git_server.cuts -= 1
            self.close_connection = True
            return
        self._send(status, headers.pop("Content-Type", "text/plain"), content, **headers)

    def _send(self, status: int, content_type: str, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
