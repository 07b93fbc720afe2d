"""What differs from code host to code host: a row each. The words of their documentation are at each row."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlsplit

import msgspec

Forge = Literal["github", "gitlab", "gitea", "forgejo", "pagure"]


@dataclass(frozen=True, slots=True)
class PullRequest:
    """`is_inside`: its branch is in the repository itself, and not in a fork that has one of the same name."""

    url: str
    branch: str
    is_inside: bool


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pull request to be."""

    branch: str
    base: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class CodeHost:
    """`project` is a path under the API's base; what is asked of a project is at paths under it."""

    name: str
    api_suffix: str
    """Of an installation's address; what stands before it is the path that the installation is under."""
    api_base: Callable[[str], str]
    """From the address of the installation: scheme and host."""
    headers: Callable[[str], dict[str, str]]
    project: Callable[[str], str]
    """From the repository's path without `.git`."""
    pulls: str
    branch: str | None
    """None: what it says of a creation tells which branch is missing."""
    listing: Callable[[str, str], Mapping[str, str]]
    """From the repository's path and the branch: the query for open pull requests, without the page."""
    proposed: Callable[[Proposal], Mapping[str, str]]
    read: Callable[[bytes], PullRequest]
    read_all: Callable[[bytes], list[PullRequest]]
    duplicate_status: int | None
    """None: it makes a second one."""
    right: str
    created_at: str | None = None
    """None: at `pulls`."""
    created_status: int = 201
    needs_user: bool = False
    """Whether git must say whose the token is."""


class _Repository(msgspec.Struct):
    id: int


class _End(msgspec.Struct):
    """One end of a pull request; its repository is gone where a fork was deleted."""

    ref: str
    repo: _Repository | None


class _Pull(msgspec.Struct):
    html_url: str
    head: _End
    base: _End

    def told(self) -> PullRequest:
        is_inside = self.head.repo is not None and self.head.repo == self.base.repo
        return PullRequest(self.html_url, self.head.ref, is_inside)


class _MergeRequest(msgspec.Struct):
    web_url: str
    source_branch: str
    source_project_id: int | None
    target_project_id: int

    def told(self) -> PullRequest:
        return PullRequest(self.web_url, self.source_branch, self.source_project_id == self.target_project_id)


def _read_pull(content: bytes) -> PullRequest:
    return msgspec.json.decode(content, type=_Pull).told()


def _read_pulls(content: bytes) -> list[PullRequest]:
    return [each.told() for each in msgspec.json.decode(content, type=list[_Pull])]


def _read_merge_request(content: bytes) -> PullRequest:
    return msgspec.json.decode(content, type=_MergeRequest).told()


def _read_merge_requests(content: bytes) -> list[PullRequest]:
    return [each.told() for each in msgspec.json.decode(content, type=list[_MergeRequest])]


class _PagureRequest(msgspec.Struct):
    full_url: str
    branch_from: str
    project: _Repository
    repo_from: _Repository | None

    def told(self) -> PullRequest:
        return PullRequest(self.full_url, self.branch_from, self.repo_from == self.project)


class _PagureRequests(msgspec.Struct):
    requests: list[_PagureRequest]


def _read_pagure_request(content: bytes) -> PullRequest:
    return msgspec.json.decode(content, type=_PagureRequest).told()


def _read_pagure_requests(content: bytes) -> list[PullRequest]:
    return [each.told() for each in msgspec.json.decode(content, type=_PagureRequests).requests]


def _github_api(address: str) -> str:
    """https://docs.github.com/en/enterprise-server@3.17/rest/quickstart and, of ghe.com,
    https://docs.github.com/en/enterprise-cloud@latest/admin/data-residency/getting-started-with-data-residency-for-github-enterprise-cloud
    """
    host = urlsplit(address).netloc.lower()
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"https://api.{host}"
    return f"{address}/api/v3"


def _without_quick_actions(text: str) -> str:
    """A line such as `/merge` would be obeyed, with the rights of the token:
    https://docs.gitlab.com/user/project/quick_actions/
    """
    return re.sub(r"(?m)^(\s*)/", r"\1\\/", text)


# https://docs.github.com/en/rest/pulls/pulls and https://docs.github.com/en/rest/branches/branches
GITHUB = CodeHost(
    name="GitHub",
    api_suffix="/api/v3",
    api_base=_github_api,
    headers=lambda token: {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    },
    project=lambda path: f"repos/{quote(path)}",
    pulls="pulls",
    branch="branches/{}",
    listing=lambda path, branch: {"state": "open", "head": f"{path.partition('/')[0]}:{branch}", "per_page": "100"},
    proposed=lambda it: {"title": it.title, "head": it.branch, "base": it.base, "body": it.body},
    read=_read_pull,
    read_all=_read_pulls,
    duplicate_status=422,
    right="Contents and Pull requests: read and write, of a fine-grained token, or the scope repo of a classic one",
)

# https://docs.gitlab.com/api/merge_requests/, https://docs.gitlab.com/api/branches/, https://docs.gitlab.com/api/rest/authentication/
GITLAB = CodeHost(
    name="GitLab",
    api_suffix="/api/v4",
    api_base=lambda address: f"{address}/api/v4",
    headers=lambda token: {"PRIVATE-TOKEN": token},
    project=lambda path: f"projects/{quote(path, safe='')}",
    pulls="merge_requests",
    branch="repository/branches/{}",
    listing=lambda path, branch: {"state": "opened", "source_branch": branch, "per_page": "100"},
    proposed=lambda it: {
        "title": it.title,
        "source_branch": it.branch,
        "target_branch": it.base,
        "description": _without_quick_actions(it.body),
    },
    read=_read_merge_request,
    read_all=_read_merge_requests,
    duplicate_status=409,
    right="the scopes api and write_repository, and the role Developer in the project",
)

# https://docs.gitea.com/api/, https://codeberg.org/api/swagger: a list cannot be asked for by its head
GITEA = CodeHost(
    name="Gitea",
    api_suffix="/api/v1",
    api_base=lambda address: f"{address}/api/v1",
    headers=lambda token: {"Authorization": f"token {token}"},
    project=lambda path: f"repos/{quote(path)}",
    pulls="pulls",
    branch="branches/{}",
    listing=lambda path, branch: {"state": "open", "sort": "recentupdate", "limit": "50"},
    proposed=lambda it: {"title": it.title, "head": it.branch, "base": it.base, "body": it.body},
    read=_read_pull,
    read_all=_read_pulls,
    duplicate_status=409,
    right="the scope write:repository, of a user who may write to the repository",
)

# https://pagure.io/api/0/: a list cannot be asked for by its branch, and the newest come first
PAGURE = CodeHost(
    name="Pagure",
    api_suffix="/api/0",
    api_base=lambda address: f"{address}/api/0",
    headers=lambda token: {"Authorization": f"token {token}"},
    project=quote,
    pulls="pull-requests",
    branch=None,
    listing=lambda path, branch: {"status": "Open", "per_page": "100"},
    proposed=lambda it: {
        "title": it.title,
        "branch_from": it.branch,
        "branch_to": it.base,
        "initial_comment": it.body,
    },
    read=_read_pagure_request,
    read_all=_read_pagure_requests,
    duplicate_status=None,
    right="the ACLs commit and pull_request_create, of a user who may commit to the project",
    created_at="pull-request/new",
    created_status=200,
    needs_user=True,
)

CODE_HOSTS: dict[Forge, CodeHost] = {
    "github": GITHUB,
    "gitlab": GITLAB,
    "gitea": GITEA,
    "forgejo": GITEA,
    "pagure": PAGURE,
}
