"""Strict doubles of four forges: each accepts only requests that the documentation of the forge allows.

GitHub  https://docs.github.com/en/rest/pulls/pulls
        https://docs.github.com/en/rest/branches/branches
GitLab  https://docs.gitlab.com/api/merge_requests/, https://docs.gitlab.com/api/branches/
        https://docs.gitlab.com/api/rest/troubleshooting/
Gitea   https://gitea.com/api/swagger; error messages: routers/api/v1/repo/pull.go of go-gitea/gitea
Forgejo https://codeberg.org/api/swagger
Pagure  https://pagure.io/api/0/; undocumented responses are those of version 5.14.1

A request with an undocumented parameter, field or path gets status 400 and is recorded in `faults`. A test fails if
there are faults at its end.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.agent.listening import Listening

Right = Literal["read", "write"]
Response = tuple[int, Any, dict[str, str]]
ForgeKind = Literal["github", "gitlab", "gitea", "pagure"]

API: dict[ForgeKind, str] = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1", "pagure": "/api/0"}


@dataclass
class Pull:
    number: int
    branch: str
    base: str
    title: str
    body: str
    state: Literal["open", "closed", "merged"] = "open"
    fork: str = ""
    """Owner of the fork that the branch is in; empty if the branch is in the repository itself."""


@dataclass
class ForgeDouble:
    """Forge with one repository at `path`. `branches` returns the branches that exist at the time of a request."""

    kind: ForgeKind
    path: str = "team/site"
    branches: Callable[[], list[str]] = lambda: ["main"]
    tags: tuple[str, ...] = ()
    tokens: dict[str, Right] = field(default_factory=lambda: {"forge-token": "write"})
    pulls: list[Pull] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path with query, and headers with names in lower case, of each request."""
    upsets: list[Response] = field(default_factory=list)
    """Responses to the next requests, which are not processed; status 0 closes the connection without a response."""
    lost: int = 0
    """Number of creations that succeed but whose response is lost."""
    before_create: Callable[[], None] = lambda: None
    faults: list[str] = field(default_factory=list)
    page_max: int = 100
    """Maximum number of pull requests on a page, like MAX_RESPONSE_ITEMS of Gitea."""
    under: str = ""
    """Path that the installation is below, such as `/git`."""
    url: str = ""

    @property
    def api(self) -> str:
        return self.url + self.under + API[self.kind]

    @property
    def repository_url(self) -> str:
        return f"{self.url}{self.under}/{self.path}.git"

    def add(self, branch: str, base: str, title: str = "", body: str = "", **more: Any) -> Pull:
        pull = Pull(len(self.pulls) + 1, branch, base, title, body, **more)
        self.pulls.append(pull)
        return pull

    def link(self, pull: Pull) -> str:
        paths = {"github": "pull", "gitlab": "-/merge_requests", "gitea": "pulls", "pagure": "pull-request"}
        return f"{self.url}{self.under}/{self.path}/{paths[self.kind]}/{pull.number}"


@contextmanager
def forge_double(kind: ForgeKind, **options: Any) -> Iterator[ForgeDouble]:
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


@dataclass(frozen=True)
class Request:
    method: str
    segments: list[str]
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


class _Fault(Exception):
    """Request that the documentation of the forge does not allow."""


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
        except _Fault as fault:
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
        _require(parts.path.startswith(base), "not under the API")
        _require(headers.get("user-agent", ""), "no User-Agent")
        query = parse_qsl(parts.query, strict_parsing=True) if parts.query else []
        _require(len(dict(query)) == len(query), "a parameter comes twice")
        if self.command == "POST":
            _require(headers.get("content-type") == "application/json", "not JSON")
        segments = [unquote(each) for each in parts.path.removeprefix(base).split("/")]
        request = Request(self.command, segments, dict(query), headers, json.loads(content) if content else None)
        doubles = {"github": _github, "gitlab": _gitlab, "gitea": _gitea, "pagure": _pagure}
        return doubles[self.forge.kind](self.forge, request)


def _require(truth: object, fault: str) -> None:
    if not truth:
        raise _Fault(fault)


def _fields(request: Request, required: set[str], optional: set[str]) -> set[str]:
    """Return the required fields that are missing; refuse undocumented ones."""
    _require(set(request.body) <= required | optional, f"fields {sorted(set(request.body) - required - optional)}")
    _require(all(isinstance(each, str) for each in request.body.values()), "a field is not a text")
    return {name for name in required if not request.body.get(name)}


def _page(forge: ForgeDouble, request: Request, chosen: list[Pull], size: str, size_max: int) -> list[Pull]:
    page, each = int(request.query.get("page", "1")), min(int(request.query.get(size, "30")), size_max, forge.page_max)
    return list(reversed(chosen))[(page - 1) * each : page * each]


# GitHub


def _github(forge: ForgeDouble, request: Request) -> Response:
    _require(request.headers.get("accept") == "application/vnd.github+json", "Accept is not GitHub's")
    _require(request.headers.get("x-github-api-version") == "2022-11-28", "no API version")
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    right = forge.tokens.get(token) if scheme == "Bearer" else None
    docs = "https://docs.github.com/rest"
    if right is None:
        return 401, {"message": "Bad credentials", "documentation_url": docs, "status": "401"}, {}
    _require(request.segments[0] == "repos" and len(request.segments) >= 4, "no such path")
    if "/".join(request.segments[1:3]).lower() != forge.path.lower():
        return 404, {"message": "Not Found", "documentation_url": docs, "status": "404"}, {}
    match request.method, request.segments[3:]:
        case "GET", ["branches", branch]:
            _require(not request.query, "a branch has no parameters")
            exists = branch in forge.branches()
            missing = {"message": "Branch not found", "documentation_url": docs, "status": "404"}
            return (200, {"name": branch, "protected": False}, {}) if exists else (404, missing, {})
        case "GET", ["pulls"]:
            return 200, [_github_pull(forge, each) for each in _github_listed(forge, request)], {}
        case "POST", ["pulls"]:
            if right == "read":
                text = "Resource not accessible by personal access token"
                return 403, {"message": text, "documentation_url": docs, "status": "403"}, {}
            return _github_create(forge, request, docs)
    raise _Fault("no such path")


def _github_listed(forge: ForgeDouble, request: Request) -> list[Pull]:
    known = {"state", "head", "base", "sort", "direction", "per_page", "page"}
    _require(set(request.query) <= known, "a parameter that GitHub does not have")
    owner, _, branch = request.query["head"].partition(":")
    _require(branch, "head is not of the form user:branch, so GitHub would not filter by it")
    state = request.query.get("state", "open")
    chosen = [
        each
        for each in forge.pulls
        if each.branch == branch
        and (each.fork or forge.path.partition("/")[0]).lower() == owner.lower()
        and (state == "all" or (each.state == "open") == (state == "open"))
    ]
    return _page(forge, request, chosen, "per_page", 100)


def _github_create(forge: ForgeDouble, request: Request, docs: str) -> Response:
    missing = _fields(request, {"title", "head", "base"}, {"body", "head_repo", "maintainer_can_modify", "draft"})
    if missing:
        text = "Invalid request.\n\n" + " ".join(f'"{each}" wasn\'t supplied.' for each in sorted(missing))
        return 422, {"message": text, "documentation_url": docs, "status": "422"}, {}
    forge.before_create()
    head, base = request.body["head"].split(":")[-1], request.body["base"]
    errors: list[dict[str, str]] = [
        {"resource": "PullRequest", "field": name, "code": "invalid"}
        for name, branch in (("head", head), ("base", base))
        if branch not in forge.branches()
    ]
    if any((each.branch, each.base, each.state) == (head, base, "open") for each in forge.pulls):
        owner = forge.path.partition("/")[0]
        text = f"A pull request already exists for {owner}:{head}."
        errors.append({"resource": "PullRequest", "code": "custom", "message": text})
    if len(request.body.get("body", "")) > 65_536:
        errors.append({"resource": "Issue", "code": "custom", "field": "body", "message": "body is too long"})
    if errors:
        return 422, {"message": "Validation Failed", "errors": errors, "documentation_url": docs, "status": "422"}, {}
    pull = forge.add(head, base, request.body["title"], request.body.get("body", ""))
    return _created(forge, 201, _github_pull(forge, pull))


def _github_pull(forge: ForgeDouble, pull: Pull) -> dict[str, Any]:
    return {
        "number": pull.number,
        "state": "open" if pull.state == "open" else "closed",
        "title": pull.title,
        "body": pull.body,
        "html_url": forge.link(pull),
        "head": {"ref": pull.branch, "label": f"{pull.fork}:{pull.branch}", "repo": {"id": 2 if pull.fork else 1}},
        "base": {"ref": pull.base, "repo": {"id": 1}},
    }


# GitLab


def _gitlab(forge: ForgeDouble, request: Request) -> Response:
    right = forge.tokens.get(request.headers.get("private-token", ""))
    if right is None:
        return 401, {"message": "401 Unauthorized"}, {}
    _require(request.segments[0] == "projects" and len(request.segments) >= 3, "no such path")
    if request.segments[1].lower() != forge.path.lower():
        return 404, {"message": "404 Project Not Found"}, {}
    match request.method, request.segments[2:]:
        case "GET", ["repository", "branches", branch]:
            exists = branch in forge.branches()
            return (
                (200, {"name": branch, "merged": False}, {})
                if exists
                else (404, {"message": "404 Branch Not Found"}, {})
            )
        case "GET", ["merge_requests"]:
            known = {"state", "source_branch", "target_branch", "order_by", "sort", "per_page", "page"}
            _require(set(request.query) <= known, "a parameter that GitLab does not have")
            state = request.query.get("state", "all")
            _require(state in {"opened", "closed", "merged", "locked", "all"}, "a state that GitLab does not have")
            chosen = [each for each in forge.pulls if each.branch == request.query.get("source_branch", each.branch)]
            chosen = [each for each in chosen if state in {"all", _gitlab_state(each)}]
            return 200, [_merge_request(forge, each) for each in _page(forge, request, chosen, "per_page", 100)], {}
        case "POST", ["merge_requests"]:
            if right == "read":
                text = "The request requires higher privileges than provided by the access token."
                return 403, {"error": "insufficient_scope", "error_description": text, "scope": "api"}, {}
            return _gitlab_create(forge, request)
    raise _Fault("no such path")


def _gitlab_create(forge: ForgeDouble, request: Request) -> Response:
    missing = _fields(request, {"title", "source_branch", "target_branch"}, {"description", "labels", "squash"})
    if missing:
        return 400, {"error": ", ".join(f"{each} is missing" for each in sorted(missing))}, {}
    forge.before_create()
    branch, base = request.body["source_branch"], request.body["target_branch"]
    if len(request.body["title"]) > 255:
        return 400, {"message": {"title": ["is too long (maximum is 255 characters)"]}}, {}
    for each in forge.pulls:
        if (each.branch, each.base, each.state) == (branch, base, "open"):
            text = f"Another open merge request already exists for this source branch: !{each.number}"
            return 409, {"message": [text]}, {}
    description = request.body.get("description", "")
    _require(not any(line.startswith("/") for line in description.splitlines()), "GitLab would execute a quick action")
    return _created(forge, 201, _merge_request(forge, forge.add(branch, base, request.body["title"], description)))


def _gitlab_state(pull: Pull) -> str:
    return "opened" if pull.state == "open" else pull.state


def _merge_request(forge: ForgeDouble, pull: Pull) -> dict[str, Any]:
    return {
        "iid": pull.number,
        "state": _gitlab_state(pull),
        "title": pull.title,
        "description": pull.body,
        "web_url": forge.link(pull),
        "source_branch": pull.branch,
        "target_branch": pull.base,
        "source_project_id": 2 if pull.fork else 1,
        "target_project_id": 1,
    }


# Gitea and Forgejo


def _gitea(forge: ForgeDouble, request: Request) -> Response:
    docs = f"{forge.url}/api/swagger"
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    right = forge.tokens.get(token) if scheme in {"token", "Bearer"} else None
    if right is None:
        return 401, {"message": "invalid username, password or token", "url": docs}, {}
    _require(request.segments[0] == "repos" and len(request.segments) >= 4, "no such path")
    gone = 404, {"errors": None, "message": "The target couldn't be found.", "url": docs}, {}
    if "/".join(request.segments[1:3]).lower() != forge.path.lower():
        return gone
    match request.method, request.segments[3:]:
        case "GET", ["branches", branch]:
            return (200, {"name": branch, "protected": False}, {}) if branch in forge.branches() else gone
        case "GET", ["pulls"]:
            known = {"state", "sort", "milestone", "labels", "poster", "page", "limit", "base_branch"}
            _require(set(request.query) <= known, "a parameter that Gitea does not have")
            state = request.query.get("state", "open")
            chosen = [each for each in forge.pulls if state == "all" or (each.state == "open") == (state == "open")]
            return 200, [_github_pull(forge, each) for each in _page(forge, request, chosen, "limit", 50)], {}
        case "POST", ["pulls"]:
            if right == "read":
                text = "token does not have at least one of required scope(s): [write:repository]"
                return 403, {"message": text, "url": docs}, {}
            return _gitea_create(forge, request, docs)
    raise _Fault("no such path")


def _gitea_create(forge: ForgeDouble, request: Request, docs: str) -> Response:
    missing = _fields(request, {"title", "head", "base"}, {"body", "assignee"})
    if missing:
        return 422, {"message": f"[{min(missing).title()}]: Required", "url": docs}, {}
    forge.before_create()
    head, base = request.body["head"], request.body["base"]
    if base in forge.tags:
        return 422, {"message": "Invalid PullRequest: base and head must be branches", "url": docs}, {}
    if base not in forge.branches() or head not in forge.branches():
        return 404, {"errors": None, "message": "The target couldn't be found.", "url": docs}, {}
    for each in forge.pulls:
        if (each.branch, each.base, each.state) == (head, base, "open"):
            text = (
                f"pull request already exists for these targets [id: {each.number}, issue_id: {each.number}, "
                f"head_repo_id: 1, base_repo_id: 1, head_branch: {head}, base_branch: {base}]"
            )
            return 409, {"message": text, "url": docs}, {}
    pull = forge.add(head, base, request.body["title"], request.body.get("body", ""))
    return _created(forge, 201, _github_pull(forge, pull))


# Pagure


def _pagure(forge: ForgeDouble, request: Request) -> Response:
    """Respond to a request. Pagure ignores the token of a request that only reads."""
    match "/".join(request.segments[:2]), request.method, request.segments[2:]:
        case path, _, _ if path.lower() != forge.path.lower():
            return 404, {"error": "Project not found", "error_code": "ENOPROJECT"}, {}
        case _, "GET", ["pull-requests"]:
            known = {"status", "assignee", "author", "tags", "page", "per_page"}
            _require(set(request.query) <= known, "a parameter that Pagure does not have")
            _require(int(request.query.get("per_page", "20")) <= 100, "per_page must be between 1 and 100")
            state = request.query.get("status", "open").lower()
            chosen = [each for each in forge.pulls if state in {"all", each.state}]
            listed = [_pagure_request(forge, each) for each in _page(forge, request, chosen, "per_page", 100)]
            return 200, {"args": dict(request.query), "requests": listed, "total_requests": len(chosen)}, {}
        case _, "POST", ["pull-request", "new"]:
            return _pagure_create(forge, request)
    raise _Fault("no such path")


def _pagure_create(forge: ForgeDouble, request: Request) -> Response:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    right = forge.tokens.get(token) if scheme == "token" else None
    if right != "write":
        text = (
            f"Invalid or expired token. Please visit {forge.url}/settings#nav-api-tab to get or renew your API token."
        )
        lacking = "Invalid token" if right is None else "Missing ACLs: pull_request_create"
        return 401, {"error": text, "error_code": "EINVALIDTOK", "errors": lacking}, {}
    missing = _fields(request, {"title", "branch_from", "branch_to"}, {"initial_comment", "repo_from"})
    invalid = {"error": "Invalid or incomplete input submitted", "error_code": "EINVALIDREQ"}
    if missing:
        return 400, {**invalid, "errors": {each: ["This field is required."] for each in sorted(missing)}}, {}
    forge.before_create()
    branch, base = request.body["branch_from"], request.body["branch_to"]
    if branch not in forge.branches():
        return 400, {**invalid, "errors": f"Branch {branch} does not exist"}, {}
    if base not in forge.branches():
        return 400, {**invalid, "errors": f"Branch {base} could not be found in the target repo"}, {}
    pull = forge.add(branch, base, request.body["title"], request.body.get("initial_comment", ""))
    return _created(forge, 200, _pagure_request(forge, pull))


def _pagure_request(forge: ForgeDouble, pull: Pull) -> dict[str, Any]:
    return {
        "id": pull.number,
        "status": pull.state.title(),
        "title": pull.title,
        "initial_comment": pull.body or None,
        "full_url": forge.link(pull),
        "branch": pull.base,
        "branch_from": pull.branch,
        "project": {"id": 1, "fullname": forge.path},
        "repo_from": {"id": 2 if pull.fork else 1, "fullname": pull.fork or forge.path},
    }


def _created(forge: ForgeDouble, status: int, body: dict[str, Any]) -> Response:
    if forge.lost:
        forge.lost -= 1
        return 0, None, {}
    return status, body, {}
