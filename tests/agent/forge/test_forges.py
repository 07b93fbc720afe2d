"""API of each forge: addresses, requests, and the decoding of documented responses."""

import json
from typing import Any

import msgspec
import pytest

from agent.forge.forges import FORGES, ForgeName, Proposal, PullRequest, default_api_base

NEW = Proposal("readership/j1", "main", "Fix it", "As asked.\n/merge")


@pytest.mark.parametrize(
    ("forge", "repository", "api"),
    [
        ("github", "https://github.com/team/site.git", "https://api.github.com"),
        ("github", "https://GitHub.com/team/site.git", "https://api.github.com"),
        ("github", "https://code.example.com/team/site", "https://code.example.com/api/v3"),
        ("github", "https://notghe.com/team/site", "https://notghe.com/api/v3"),
        ("github", "https://octo.ghe.com/team/site", "https://api.octo.ghe.com"),
        ("gitlab", "https://gitlab.com/a/b/c.git", "https://gitlab.com/api/v4"),
        ("gitea", "http://git.example.com:3000/team/site", "http://git.example.com:3000/api/v1"),
        ("forgejo", "https://codeberg.org/team/site", "https://codeberg.org/api/v1"),
    ],
)
def test_api_base_follows_from_the_repository(forge: ForgeName, repository: str, api: str) -> None:
    assert default_api_base(forge, repository) == api


@pytest.mark.parametrize(
    ("forge", "path", "project"),
    [
        ("github", "team/site", "repos/team/site"),
        ("gitlab", "group/sub group/site", "projects/group%2Fsub%20group%2Fsite"),
        ("gitea", "team/a b", "repos/team/a%20b"),
    ],
)
def test_project_is_the_quoted_path_of_the_repository(forge: ForgeName, path: str, project: str) -> None:
    assert FORGES[forge].project(path) == project


@pytest.mark.parametrize(
    ("forge", "body"),
    [
        ("github", {"title": "Fix it", "head": "readership/j1", "base": "main", "body": "As asked.\n/merge"}),
        ("gitea", {"title": "Fix it", "head": "readership/j1", "base": "main", "body": "As asked.\n/merge"}),
        (
            "gitlab",
            {
                "title": "Fix it",
                "source_branch": "readership/j1",
                "target_branch": "main",
                "description": "As asked.\n\\/merge",
            },
        ),
    ],
)
def test_creation_has_the_documented_fields_and_no_quick_action(forge: ForgeName, body: dict[str, str]) -> None:
    assert FORGES[forge].creation(NEW) == body


def pull(head: int | None, base: int) -> dict[str, Any]:
    """Return a pull request of GitHub and Gitea between two repositories; None is a deleted fork."""
    return {
        "number": 7,
        "html_url": "u",
        "head": {"ref": "b", "repo": None if head is None else {"id": head}},
        "base": {"ref": "main", "repo": {"id": base}},
    }


def merge_request(source: int | None, target: int) -> dict[str, Any]:
    return {"web_url": "u", "source_branch": "b", "source_project_id": source, "target_project_id": target}


@pytest.mark.parametrize(("forge", "response"), [("github", pull), ("gitea", pull), ("gitlab", merge_request)])
@pytest.mark.parametrize(("source", "is_from_fork"), [(1, False), (2, True), (None, True)])
def test_branch_of_another_or_a_deleted_repository_is_from_a_fork(
    forge: ForgeName, response: Any, source: int | None, is_from_fork: bool
) -> None:
    one = response(source, 1)
    expected = PullRequest("u", "b", is_from_fork)
    assert FORGES[forge].read(json.dumps(one).encode()) == expected
    assert FORGES[forge].read_all(json.dumps([one, one]).encode()) == [expected, expected]


@pytest.mark.parametrize("forge", ["github", "gitlab", "gitea"])
@pytest.mark.parametrize("content", [b"", b"<html>", b"{}", b'[{"html_url": 1}]'])
def test_other_json_is_no_list_of_pull_requests(forge: ForgeName, content: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        FORGES[forge].read_all(content)
