"""Double of a forge with one repository, and the checks that the forges have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Right = Literal["read", "write"]
Response = tuple[int, Any, dict[str, str]]
ForgeKind = Literal["github", "gitlab", "gitea"]

API: dict[ForgeKind, str] = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}


@dataclass
class Pull:
    """Pull request of the repository."""

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
        paths = {"github": "pull", "gitlab": "-/merge_requests", "gitea": "pulls"}
        return f"{self.url}{self.under}/{self.path}/{paths[self.kind]}/{pull.number}"


@dataclass(frozen=True)
class Request:
    """Parsed request; `segments` are the parts of the path below the base of the API."""

    method: str
    segments: list[str]
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


class Fault(Exception):
    """Request that the documentation of the forge does not allow."""


def require(truth: object, fault: str) -> None:
    """Raise Fault unless `truth` is true."""
    if not truth:
        raise Fault(fault)


def missing_fields(request: Request, required: set[str], optional: set[str]) -> set[str]:
    """Return the required fields that are missing; refuse undocumented ones."""
    require(set(request.body) <= required | optional, f"fields {sorted(set(request.body) - required - optional)}")
    require(all(isinstance(each, str) for each in request.body.values()), "a field is not a text")
    return {name for name in required if not request.body.get(name)}


def page(forge: ForgeDouble, request: Request, chosen: list[Pull], size: str, size_max: int) -> list[Pull]:
    """Return the requested page of pull requests, from newest to oldest.

    `size` is the parameter with the number of pull requests on a page, and `size_max` its maximum.
    """
    number = int(request.query.get("page", "1"))
    length = min(int(request.query.get(size, "30")), size_max, forge.page_max)
    return list(reversed(chosen))[(number - 1) * length : number * length]


def created(forge: ForgeDouble, status: int, body: dict[str, Any]) -> Response:
    """Return the response to a creation, or status 0 if the response is lost."""
    if forge.lost:
        forge.lost -= 1
        return 0, None, {}
    return status, body, {}
