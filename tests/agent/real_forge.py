"""A forge that runs, and what is in one repository of it, read by another way than the product's."""

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from agent.git.remote import USERNAME
from tests.agent.git_server import git

Names = tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """Of an API: paths under a project, and the names that lead to what a pull request tells."""

    project: str
    listing: str
    """Of the open ones, the newest first."""
    pull: str
    new: str
    link: str
    branch: Names
    base: Names
    ends: tuple[str, str]
    """What a new one's branch and base are called."""
    listed: Names = ()


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
_PAGURE = Shape(
    project="{path}",
    listing="pull-requests?status=Open",
    pull="pull-request/{number}",
    new="pull-request/new",
    link="full_url",
    branch=("branch_from",),
    base=("branch",),
    ends=("branch_from", "branch_to"),
    listed=("requests",),
)
SHAPES = {"github": _GITHUB, "gitea": _GITHUB, "forgejo": _GITHUB, "gitlab": _GITLAB, "pagure": _PAGURE}
"""Pagure's was tried; the others are as documented."""


@dataclass(frozen=True)
class PullRequest:
    branch: str
    base: str
    title: str
    link: str


@dataclass(frozen=True)
class RealForge:
    """`api` is the API's base; `user` is empty where it is not asked for."""

    kind: str
    api: str
    repository: str
    token: str = field(repr=False)
    user: str = ""
    ref: str = "main"

    def pull(self, link: str) -> PullRequest:
        """The one of this link, asked for by its number."""
        return self._told(self._ask("GET", self._shape.pull.format(number=link.rpartition("/")[2])))

    def open_pulls(self, branch: str) -> list[PullRequest]:
        listed = _at(self._ask("GET", self._shape.listing), self._shape.listed)
        return [pull for pull in map(self._told, listed) if pull.branch == branch]

    def open_by_hand(self, branch: str) -> PullRequest:
        ends = dict(zip(self._shape.ends, (branch, self.ref), strict=True))
        return self._told(self._ask("POST", self._shape.new, {"title": "By hand", **ends}))

    def commits(self, branch: str, folder: Path) -> list[str]:
        """The subjects of those that the branch has beyond the ref, the first one first; none without a branch."""
        if not self._git("ls-remote", self.repository, f"refs/heads/{branch}"):
            return []
        self._fetch(branch, folder)
        return git("-C", str(folder), "log", "--reverse", "--format=%s", f"{self.ref}..{branch}").decode().splitlines()

    def added(self, branch: str, folder: Path) -> list[bytes]:
        """The contents of the files that the branch has beyond the ref."""
        self._fetch(branch, folder)
        named = git("-C", str(folder), "diff", "--name-only", "--diff-filter=A", self.ref, branch).decode().split()
        return [git("-C", str(folder), "cat-file", "blob", f"{branch}:{name}") for name in named]

    @property
    def _shape(self) -> Shape:
        return SHAPES[self.kind]

    def _told(self, pull: Any) -> PullRequest:
        shape = self._shape
        return PullRequest(_at(pull, shape.branch), _at(pull, shape.base), pull["title"], pull[shape.link])

    def _ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        named = urlsplit(self.repository).path.strip("/").removesuffix(".git")
        project = self._shape.project.format(path=named, quoted=quote(named, safe=""))
        scheme = "token" if self.kind == "pagure" else "Bearer"
        answer = httpx.request(
            method,
            f"{self.api}/{project}/{path}",
            json=body,
            headers={"Authorization": f"{scheme} {self.token}"},
            timeout=60,
        )
        assert answer.is_success, answer.text
        return answer.json()

    def _fetch(self, branch: str, folder: Path) -> None:
        """Both branches as they are, into a repository in the folder."""
        git("init", "--quiet", "--bare", str(folder))
        wanted = [f"+refs/heads/{name}:refs/heads/{name}" for name in (self.ref, branch)]
        self._git("-C", str(folder), "fetch", "--quiet", self.repository, *wanted)

    def _git(self, *arguments: str) -> bytes:
        basic = base64.b64encode(f"{self.user or USERNAME}:{self.token}".encode()).decode()
        return git("-c", f"http.extraHeader=Authorization: Basic {basic}", *arguments)


def _at(told: Any, names: Names) -> Any:
    for name in names:
        told = told[name]
    return told
