"""Differences between the APIs of the forges, one record per forge, with links to their documentation."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote, urlsplit

import msgspec

ForgeName = Literal["github", "gitlab", "gitea", "forgejo"]


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Pull request as a forge lists it. `is_from_fork`: the branch belongs to another repository."""

    url: str
    branch: str
    is_from_fork: bool


@dataclass(frozen=True, slots=True)
class Proposal:
    """Content of a new pull request that merges `branch` into `base`."""

    branch: str
    base: str
    title: str
    body: str


class _Repository(msgspec.Struct):
    id: int


class _Ref(msgspec.Struct):
    """Head or base of a pull request. A deleted fork has no `repo`."""

    ref: str
    repo: _Repository | None


class _Pull(msgspec.Struct):
    """Pull request of GitHub and Gitea."""

    html_url: str
    head: _Ref
    base: _Ref

    def pull_request(self) -> PullRequest:
        return PullRequest(self.html_url, self.head.ref, self.head.repo is None or self.head.repo != self.base.repo)


class _MergeRequest(msgspec.Struct):
    """Merge request of GitLab."""

    web_url: str
    source_branch: str
    source_project_id: int | None
    target_project_id: int

    def pull_request(self) -> PullRequest:
        return PullRequest(self.web_url, self.source_branch, self.source_project_id != self.target_project_id)


@dataclass(frozen=True, slots=True)
class Forge:
    """API of one kind of forge. A *project* is the path of a repository's resources below the base of the API."""

    name: str
    api_suffix: str
    """End of the API's URL. An installation below a path has that path before the suffix."""
    api_base: Callable[[str], str]
    """Base of the API, from scheme and host of the installation."""
    headers: Callable[[str], dict[str, str]]
    """Request headers, from the token."""
    project: Callable[[str], str]
    """Project, from the path of the repository without `.git`."""
    pulls: str
    """Path of the pull requests below the project."""
    branch: str
    """Path of a branch below the project."""
    list_query: Callable[[str, str], Mapping[str, str]]
    """Query for open pull requests without the page number, from the path of the repository and the branch."""
    creation: Callable[[Proposal], Mapping[str, str]]
    """Request body that creates a pull request."""
    pull: type[_Pull | _MergeRequest]
    duplicate_status: int
    """Status of the response if the pull request exists already."""
    required_rights: str
    """Rights of the token that a job needs, in the forge's own terms."""

    def read(self, content: bytes | msgspec.Raw) -> PullRequest:
        return msgspec.json.decode(content, type=self.pull).pull_request()

    def read_all(self, content: bytes) -> list[PullRequest]:
        return [self.read(each) for each in msgspec.json.decode(content, type=list[msgspec.Raw])]


def _github_api(installation: str) -> str:
    """Return the API base of github.com, of a ghe.com subdomain, or of a GitHub Enterprise Server.

    https://docs.github.com/en/enterprise-server@3.17/rest/quickstart
    https://docs.github.com/en/enterprise-cloud@latest/admin/data-residency/getting-started-with-data-residency-for-github-enterprise-cloud
    """
    host = urlsplit(installation).netloc.lower()
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"https://api.{host}"
    return f"{installation}/api/v3"


def _without_quick_actions(text: str) -> str:
    """Escape the slash at the start of a line: GitLab executes a line such as `/merge` with the token's rights.

    https://docs.gitlab.com/user/project/quick_actions/
    """
    return re.sub(r"(?m)^(\s*)/", r"\1\\/", text)


# https://docs.github.com/en/rest/pulls/pulls and https://docs.github.com/en/rest/branches/branches
GITHUB = Forge(
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
    list_query=lambda path, branch: {"state": "open", "head": f"{path.partition('/')[0]}:{branch}", "per_page": "100"},
    creation=lambda new: {"title": new.title, "head": new.branch, "base": new.base, "body": new.body},
    pull=_Pull,
    duplicate_status=422,
    required_rights=(
        "Contents and Pull requests: read and write, of a fine-grained token, or the scope repo of a classic one"
    ),
)

# https://docs.gitlab.com/api/merge_requests/, https://docs.gitlab.com/api/branches/, https://docs.gitlab.com/api/rest/authentication/
GITLAB = Forge(
    name="GitLab",
    api_suffix="/api/v4",
    api_base=lambda installation: f"{installation}/api/v4",
    headers=lambda token: {"PRIVATE-TOKEN": token},
    project=lambda path: f"projects/{quote(path, safe='')}",
    pulls="merge_requests",
    branch="repository/branches/{}",
    list_query=lambda path, branch: {"state": "opened", "source_branch": branch, "per_page": "100"},
    creation=lambda new: {
        "title": new.title,
        "source_branch": new.branch,
        "target_branch": new.base,
        "description": _without_quick_actions(new.body),
    },
    pull=_MergeRequest,
    duplicate_status=409,
    required_rights="the scopes api and write_repository, and the role Developer in the project",
)

# https://docs.gitea.com/api/, https://codeberg.org/api/swagger: the list cannot be filtered by head
GITEA = replace(
    GITHUB,
    name="Gitea",
    api_suffix="/api/v1",
    api_base=lambda installation: f"{installation}/api/v1",
    headers=lambda token: {"Authorization": f"token {token}"},
    list_query=lambda path, branch: {"state": "open", "sort": "recentupdate", "limit": "50"},
    duplicate_status=409,
    required_rights="the scope write:repository, of a user who may write to the repository",
)

FORGES: dict[ForgeName, Forge] = {"github": GITHUB, "gitlab": GITLAB, "gitea": GITEA, "forgejo": GITEA}


def default_api_base(forge: ForgeName, repository_url: str) -> str:
    """Return the base of the forge's API for a repository URL, if the installation is not below a path."""
    parts = urlsplit(repository_url)
    return FORGES[forge].api_base(f"{parts.scheme}://{parts.netloc}")
