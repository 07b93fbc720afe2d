"""A real git server for tests: `git http-backend` behind HTTP, with tokens, and with the faults that hosts have.

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

from tests.agent.listening import Listening
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
    """Repositories under `folder`, at `url/<name>.git`. Whoever has no token of `tokens` gets 401, as at every host."""

    folder: Path
    tokens: dict[str, Right] = field(default_factory=lambda: {"git-token": "write"})
    public: bool = False
    user: str = ""
    """Whose the tokens are, if that is looked at: to any other name they are none."""
    url: str = ""
    statuses: list[int] = field(default_factory=list)
    """Answers given, one a request, before any is looked at."""
    redirects: dict[str, str] = field(default_factory=dict)
    """From a repository's path to another URL of a repository."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Each request: its path with its query, and the token that came with it."""
    redirects_after_token: bool = False
    on_request: Callable[[], object] = lambda: None
    cuts: int = 0
    """So many answers to a push are cut off after the push was done."""
    echoes: bool = False
    """Whether a refused push is told the token back, as a careless proxy may."""

    def create(self, name: str, files: dict[str, bytes | Entry] | None = None, branch: str = "main") -> str:
        """A repository with one commit of the files; without files it is empty. Returns its URL."""
        path = self.path(name)
        git("init", "--quiet", "--bare", f"--initial-branch={branch}", str(path))
        if files is not None:
            self.commit(name, files, branch)
        return f"{self.url}/{name}.git"

    def commit(self, name: str, files: dict[str, bytes | Entry], branch: str = "main", message: str = "First") -> str:
        """One more commit on a branch, by somebody else; files that are not named stay. Returns its id."""
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
        """The commit that a branch is at, or nothing."""
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
        """Its commits, the newest first."""
        return git("-C", str(self.path(name)), "log", f"--format={form}", branch).decode().splitlines()

    def read(self, name: str, branch: str) -> dict[str, Entry]:
        """Every file of a branch: mode and content; of a submodule, its commit."""
        found = {}
        for line in git("-C", str(self.path(name)), "ls-tree", "-r", "-z", branch).split(b"\0")[:-1]:
            described, _, file = line.partition(b"\t")
            mode, kind, object_id = described.decode().split()
            content = (
                object_id.encode()
                if kind == "commit"
                else git("-C", str(self.path(name)), "cat-file", "blob", object_id)
            )
            found[os.fsdecode(file)] = (mode, content)
        return found

    def hook(self, name: str, script: str, kind: str = "pre-receive") -> None:
        """A program of the server's owner, which can refuse a push."""
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
    """The owner's git, of which no configuration of this machine's counts."""
    require("git")
    done = subprocess.run(["git", *arguments], input=stdin, capture_output=True, env=CLEAN, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class _Handler(BaseHTTPRequestHandler):
    git_server: GitServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def log_message(self, *arguments: object) -> None:
        """Tests read `requests`."""

    def _answer(self, body: bytes) -> None:
        server = self.git_server
        token = self._token()
        server.requests.append((self.path, token))
        server.on_request()
        if server.statuses:
            self._say(server.statuses.pop(0), "text/plain", b"out of order")
            return
        parts = urlsplit(self.path)
        repository, _, service = parts.path.partition(".git/")
        if repository in server.redirects and (token or not server.redirects_after_token):
            self._say(301, "text/plain", b"", Location=f"{server.redirects[repository]}/{service}?{parts.query}")
            return
        right = server.tokens.get(token, "read" if server.public and not token else None)
        is_push = "git-receive-pack" in self.path
        if right is None or (is_push and not token):
            self._say(401, "text/plain", b"who are you?", **{"WWW-Authenticate": 'Basic realm="git"'})
        elif not server.path(repository.lstrip("/")).is_dir():
            self._say(404, "text/plain", b"not found")
        elif is_push and right != "write":
            told = f" Sent: {self.headers['Authorization']} and {token}." if server.echoes else ""
            self._say(403, "text/plain", f"Write access to repository not granted.{told}".encode())
        else:
            self._run(parts.path, parts.query, body)

    def _token(self) -> str:
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        user, _, token = base64.b64decode(given).decode().partition(":")
        return token if scheme == "Basic" and self.git_server.user in ("", user) else ""

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
        """The CGI, and its answer."""
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
        self._say(status, headers.pop("Content-Type", "text/plain"), content, **headers)

    def _say(self, status: int, content_type: str, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
