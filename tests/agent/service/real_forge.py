"""Client of a real forge for one repository, independent of the tested code."""

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from agent.git.remote import USERNAME
from tests.agent.servers.git_server import git

Names = tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """API of a forge: paths below a project, and the JSON keys of a pull request's fields."""

    project: str
    listing: str
    """Path of the open pull requests, from newest to oldest."""
    pull: str
    new: str
    link: str
    branch: Names
    base: Names
    ends: tuple[str, str]
    """Keys of the branch and the base in the body that creates a pull request."""


_GITHUB = Shape(
    project="repos/{path}",
    listing="pulls?state=open",
    pull="pulls/{number}",
    new="pulls",
    link="html_url",
    branch=("head", "ref"),
    base=("base", "ref"),
    ends=("head", "base"),
)
_GITLAB = Shape(
    project="projects/{quoted}",
    listing="merge_requests?state=opened",
    pull="merge_requests/{number}",
    new="merge_requests",
    link="web_url",
    branch=("source_branch",),
    base=("target_branch",),
    ends=("source_branch", "target_branch"),
)
SHAPES = {"github": _GITHUB, "gitea": _GITHUB, "forgejo": _GITHUB, "gitlab": _GITLAB}
"""API of each forge. They follow their documentation."""


@dataclass(frozen=True)
class PullRequest:
    branch: str
    base: str
    title: str
    link: str


@dataclass(frozen=True)
class RealForge:
    """One repository at a forge. `api` is the base of its API;"""

    kind: str
    api: str
    repository: str
    token: str = field(repr=False)
    ref: str = "main"

    def pull(self, link: str) -> PullRequest:
        """Return the pull request with this URL."""
        return self._pull_request(self._request("GET", self._shape.pull.format(number=link.rpartition("/")[2])))

    def open_pulls(self, branch: str) -> list[PullRequest]:
        listed = self._request("GET", self._shape.listing)
        return [pull for pull in map(self._pull_request, listed) if pull.branch == branch]

    def open_by_hand(self, branch: str) -> PullRequest:
        ends = dict(zip(self._shape.ends, (branch, self.ref), strict=True))
        return self._pull_request(self._request("POST", self._shape.new, {"title": "By hand", **ends}))

    def commits(self, branch: str, folder: Path) -> list[str]:
        """Return the subjects of the commits after the ref, from oldest to newest; none without a branch."""
        if not self._git("ls-remote", self.repository, f"refs/heads/{branch}"):
            return []
        self._fetch(branch, folder)
        return git("-C", str(folder), "log", "--reverse", "--format=%s", f"{self.ref}..{branch}").decode().splitlines()

    def added(self, branch: str, folder: Path) -> list[bytes]:
        """Return the contents of the files that the branch adds to the ref."""
        self._fetch(branch, folder)
        names = git("-C", str(folder), "diff", "--name-only", "--diff-filter=A", self.ref, branch).decode().split()
        return [git("-C", str(folder), "cat-file", "blob", f"{branch}:{name}") for name in names]

    @property
    def _shape(self) -> Shape:
        return SHAPES[self.kind]

    def _pull_request(self, pull: Any) -> PullRequest:
        shape = self._shape
        return PullRequest(_at(pull, shape.branch), _at(pull, shape.base), pull["title"], pull[shape.link])

    def _request(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        path_of_repository = urlsplit(self.repository).path.strip("/").removesuffix(".git")
        project = self._shape.project.format(path=path_of_repository, quoted=quote(path_of_repository, safe=""))
        response = httpx.request(
            method,
            f"{self.api}/{project}/{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
        )
        assert response.is_success, response.text
        return response.json()

    def _fetch(self, branch: str, folder: Path) -> None:
        """Fetch both branches into a bare repository in the folder."""
        git("init", "--quiet", "--bare", str(folder))
        wanted = [f"+refs/heads/{name}:refs/heads/{name}" for name in (self.ref, branch)]
        self._git("-C", str(folder), "fetch", "--quiet", self.repository, *wanted)

    def _git(self, *arguments: str) -> bytes:
        basic = base64.b64encode(f"{USERNAME}:{self.token}".encode()).decode()
        return git("-c", f"http.extraHeader=Authorization: Basic {basic}", *arguments)


def _at(value: Any, names: Names) -> Any:
    for name in names:
        value = value[name]
    return value
