"""One pull request a branch, at each of the forges, whatever goes wrong on the way."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agent import retry
from agent.errors import ForgeUnavailable, InvalidConfiguration, PullRequestRefused, TurnStopped
from agent.forge import forges, pull_request
from agent.forge.forges import Proposal
from tests.agent.dripping import dripping
from tests.agent.forge_doubles import ForgeDouble, ForgeKind, forge_double

BRANCH = "readership/j1"
TOKEN = "forge-token"
SLOWLY = (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n[", b" ")
KINDS: tuple[ForgeKind, ...] = ("github", "gitlab", "gitea", "pagure")


@pytest.fixture(params=KINDS)
def forge(request: pytest.FixtureRequest) -> Iterator[ForgeDouble]:
    with forge_double(request.param, branches=lambda: ["main", "release/2", BRANCH]) as double:
        yield double


@pytest.fixture
def github() -> Iterator[ForgeDouble]:
    """For what the four have in common and takes time."""
    with forge_double("github", branches=lambda: ["main", BRANCH]) as double:
        yield double


def open_at(forge: ForgeDouble, **options: Any) -> str:
    given = {"token": TOKEN, "base": "main", "title": "Fix it", "body": "As asked.", "stopped": False, **options}
    return pull_request.open_pull_request(
        forge.kind,
        given.get("api", forge.api),
        forge.repository_url,
        given["token"],
        Proposal(BRANCH, given["base"], given["title"], given["body"]),
        lambda: bool(given["stopped"]),
    )


def test_a_branch_without_one_gets_a_pull_request(forge: ForgeDouble) -> None:
    assert open_at(forge) == forge.link(forge.pulls[0])
    assert [(each.branch, each.base, each.title, each.body) for each in forge.pulls] == [
        (BRANCH, "main", "Fix it", "As asked.")
    ]


def test_a_follow_up_finds_the_open_one(forge: ForgeDouble) -> None:
    assert open_at(forge) == open_at(forge)
    assert len(forge.pulls) == 1
    assert [each[0] for each in forge.requests].count("POST") == 1


def test_one_into_another_base_is_found_too(forge: ForgeDouble) -> None:
    assert open_at(forge) == open_at(forge, base="release/2")


def test_a_closed_or_merged_one_is_left_alone_and_a_new_one_made(forge: ForgeDouble) -> None:
    forge.add(BRANCH, "main", state="closed")
    forge.add(BRANCH, "main", state="merged")
    assert open_at(forge) == forge.link(forge.pulls[2])


def test_one_from_a_fork_with_a_branch_of_that_name_is_not_ours(forge: ForgeDouble) -> None:
    forge.add(BRANCH, "release/2", fork="stranger")
    assert open_at(forge) == forge.link(forge.pulls[1])


def test_one_among_many_open_ones_is_found(forge: ForgeDouble) -> None:
    mine = forge.add(BRANCH, "main")
    for number in range(130):
        forge.add(f"other-{number}", "main")
    assert open_at(forge) == forge.link(mine)


def test_one_among_many_is_found_where_pages_are_shorter_than_asked_for() -> None:
    with forge_double("gitea", branches=lambda: ["main", BRANCH], page_max=7) as forge:
        mine = forge.add(BRANCH, "main")
        for number in range(20):
            forge.add(f"other-{number}", "main")
        assert open_at(forge) == forge.link(mine)
        assert len(forge.requests) == 3


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pagure"])
def test_one_that_is_made_at_the_same_moment_is_found_again(kind: ForgeKind) -> None:
    with forge_double(kind, branches=lambda: ["main", BRANCH]) as forge:
        forge.before_create = lambda: None if forge.pulls else forge.add(BRANCH, "main") and None
        assert open_at(forge) == forge.link(forge.pulls[0])
    assert len(forge.pulls) == 1


def test_a_lost_answer_does_not_make_a_second_one(forge: ForgeDouble) -> None:
    forge.lost = 1
    assert open_at(forge) == forge.link(forge.pulls[0])
    assert [each[0] for each in forge.requests].count("POST") == 1, "it is looked for before it is asked for again"


def test_one_that_is_made_after_nobody_waits_for_it_is_the_only_one(
    forge: ForgeDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_request, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(pull_request, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setattr(retry, "PAUSES_S", (0.05, 0.05))
    slow: list[threading.Thread] = []

    def take_long() -> None:
        if not slow:
            slow.append(threading.current_thread())
            threading.Event().wait(0.6)

    forge.before_create = take_long
    url = open_at(forge)
    slow[0].join()
    assert [forge.link(each) for each in forge.pulls] == [url]


def test_one_that_is_refused_for_now_is_not_looked_for() -> None:
    with forge_double("pagure", branches=lambda: ["main", BRANCH]) as forge:
        forge.upsets = [(200, {"requests": []}, {}), (429, {"error": "slow down"}, {"Retry-After": "3600"})]
        with pytest.raises(ForgeUnavailable, match="slow down"):
            open_at(forge)
        assert [each[0] for each in forge.requests] == ["GET", "POST"]


def test_none_is_made_for_a_turn_that_was_stopped(forge: ForgeDouble) -> None:
    with pytest.raises(TurnStopped):
        open_at(forge, stopped=forge.requests)
    assert forge.pulls == []


def test_a_turn_that_is_stopped_meanwhile_hears_what_became_of_its_request(forge: ForgeDouble) -> None:
    stopped: list[bool] = []

    def take_a_while() -> None:
        stopped.append(True)
        threading.Event().wait(0.5)

    forge.before_create = take_a_while
    assert open_at(forge, stopped=stopped) == forge.link(forge.pulls[0])


def test_a_host_that_answers_a_byte_at_a_time_is_given_up(github: ForgeDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_request, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(retry, "PAUSES_S", (0.05, 0.05))
    with dripping(*SLOWLY) as drip, pytest.raises(ForgeUnavailable, match=r"did not answer within 0.3 s"):
        open_at(github, api=drip.url)
    assert (drip.came, drip.whole) == (3, 0)


def test_a_stop_ends_the_wait_for_such_a_host(github: ForgeDouble) -> None:
    with dripping(*SLOWLY) as drip:
        with pytest.raises(TurnStopped):
            pull_request.open_pull_request(
                "github",
                drip.url,
                github.repository_url,
                TOKEN,
                Proposal(BRANCH, "main", "t", "b"),
                lambda: drip.came > 0,
            )
        assert (drip.came, drip.whole) == (1, 0)


@pytest.mark.parametrize("status", [0, 502, 503, 504])
def test_a_host_that_is_away_for_a_moment_is_asked_again(github: ForgeDouble, status: int) -> None:
    github.upsets = [(status, b"<html>Bad gateway</html>", {})]
    assert open_at(github) == github.link(github.pulls[0])


def test_a_host_that_stays_away_fails_the_turn(github: ForgeDouble) -> None:
    github.upsets = [(503, {"message": "down for maintenance"}, {})] * 3
    with pytest.raises(ForgeUnavailable, match=r"is unavailable \(503\): down for maintenance"):
        open_at(github)
    assert len(github.requests) == 3


def test_a_rate_limit_is_waited_for(github: ForgeDouble) -> None:
    github.upsets = [(429, {"message": "slow down"}, {"Retry-After": "2"})]
    assert open_at(github) == github.link(github.pulls[0])


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry-After": "3600"}),
        (403, {"Retry-After": "3600"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}),
        (503, {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}),
    ],
)
def test_a_rate_limit_of_an_hour_is_not(github: ForgeDouble, status: int, headers: dict[str, str]) -> None:
    github.upsets = [(status, {"message": "API rate limit exceeded"}, headers)]
    with pytest.raises(ForgeUnavailable, match="API rate limit exceeded; it asks for a pause of"):
        open_at(github)
    assert len(github.requests) == 1


def test_a_stop_ends_the_waiting(github: ForgeDouble) -> None:
    github.upsets = [(503, b"", {"Retry-After": "50"})]
    with pytest.raises(TurnStopped):
        open_at(github, stopped=github.requests)
    assert len(github.requests) == 1


@pytest.mark.parametrize(
    ("kind", "needed"),
    [("github", "Pull requests: read and write"), ("gitlab", "scopes api"), ("gitea", "scope write:repository")],
)
def test_a_token_that_may_only_read_is_told_what_it_lacks(kind: ForgeKind, needed: str) -> None:
    with (
        forge_double(kind, tokens={"read-token": "read"}) as forge,
        pytest.raises(
            PullRequestRefused,
            match=f"{forges.FORGES[kind].name} forbids the request .403.; the token needs .*{needed}",
        ),
    ):
        open_at(forge, token="read-token")


def test_a_token_that_lacks_an_acl_is_told_which() -> None:
    with (
        forge_double("pagure", tokens={"read-token": "read"}) as forge,
        pytest.raises(PullRequestRefused, match=r"\(401\): .*Missing ACLs: pull_request_create"),
    ):
        open_at(forge, token="read-token")


def test_a_wrong_token_is_told_as_such_and_not_repeated(forge: ForgeDouble) -> None:
    with pytest.raises(PullRequestRefused, match=r"does not accept the token \(401\)") as raised:
        open_at(forge, token="a-wrong-token")
    assert "a-wrong-token" not in str(raised.value)


def test_a_host_that_repeats_the_token_does_not_get_it_into_the_reason(forge: ForgeDouble) -> None:
    forge.upsets = [(400, {"message": f"bad header {TOKEN}"}, {})]
    with pytest.raises(PullRequestRefused, match=r"bad header \[token\]"):
        open_at(forge)


def test_a_repository_that_is_gone_is_named(forge: ForgeDouble) -> None:
    forge.path = "somebody/else"
    url = forge.repository_url.replace("somebody/else", "team/site")
    with pytest.raises(PullRequestRefused, match=r"has no team/site at .* \(404\)"):
        pull_request.open_pull_request(
            forge.kind, forge.api, url, TOKEN, Proposal(BRANCH, "main", "t", "b"), lambda: False
        )


@pytest.mark.parametrize("base", ["v1.0", "0123456789012345678901234567890123456789", "gone"])
def test_a_base_that_is_no_branch_is_told_so(forge: ForgeDouble, base: str) -> None:
    forge.tags = ("v1.0",)
    told = "has no branch '{}'.*not a tag or a commit" if forge.kind != "pagure" else "Branch {} could not be found"
    with pytest.raises(PullRequestRefused, match=told.format(base)):
        open_at(forge, base=base)
    assert forge.pulls == []


def test_a_base_with_a_slash_or_in_full_is_a_branch(forge: ForgeDouble) -> None:
    open_at(forge, base="refs/heads/release/2")
    assert forge.pulls[0].base == "release/2"


def test_a_redirect_within_the_host_is_followed(forge: ForgeDouble) -> None:
    forge.upsets = [(301, b"", {"Location": f"{forge.api}/{_project(forge)}/{_pulls(forge)}?{_head(forge)}"})]
    assert open_at(forge) == forge.link(forge.pulls[0])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_host_never_gets_the_token(forge: ForgeDouble, status: int) -> None:
    with forge_double(forge.kind) as other:
        forge.upsets = [(status, b"", {"Location": f"{other.api}/{_project(forge)}/{_pulls(forge)}"})]
        with pytest.raises(PullRequestRefused, match="redirects to another host"):
            open_at(forge)
        assert other.requests == []


def test_a_redirect_without_end_is_given_up(forge: ForgeDouble) -> None:
    forge.upsets = [(302, b"", {"Location": "/again"})] * 4
    with pytest.raises(PullRequestRefused, match="redirects more than 3 times"):
        open_at(forge)


def test_a_page_that_is_no_api_is_told_so(forge: ForgeDouble) -> None:
    forge.upsets = [(200, b"<html>Sign in</html>", {})]
    with pytest.raises(PullRequestRefused, match="check the project's API base"):
        open_at(forge)


def test_the_hosts_own_words_reach_the_reason() -> None:
    with forge_double("github", branches=lambda: ["main"]) as forge, pytest.raises(PullRequestRefused) as raised:
        open_at(forge)
    assert str(raised.value) == "GitHub refused the pull request (422): Validation Failed; head invalid"


def test_a_long_prompt_fits(forge: ForgeDouble) -> None:
    open_at(forge, title="many\nwords " * 100, body="x" * 100_000)
    assert len(forge.pulls[0].title) <= 255
    assert forge.pulls[0].title.startswith("many words many")


def test_a_line_that_gitlab_would_obey_is_defused() -> None:
    with forge_double("gitlab", branches=lambda: ["main", BRANCH]) as forge:
        open_at(forge, body="Do this:\n/merge\n  /approve\nand a/b")
        assert forge.pulls[0].body == "Do this:\n\\/merge\n  \\/approve\nand a/b"


def test_a_project_in_subgroups_is_one_segment() -> None:
    with forge_double("gitlab", path="group/sub group/site", branches=lambda: ["main", BRANCH]) as forge:
        pull_request.open_pull_request(
            "gitlab",
            None,
            f"{forge.url}/group/sub%20group/site.git",
            TOKEN,
            Proposal(BRANCH, "main", "t", "b"),
            lambda: False,
        )
        assert len(forge.pulls) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_installation_under_a_path_is_reached_by_its_api_base(kind: ForgeKind) -> None:
    with forge_double(kind, under="/code/git", branches=lambda: ["main", BRANCH]) as forge:
        assert open_at(forge) == forge.link(forge.pulls[0])


def test_forgejo_is_spoken_to_as_gitea() -> None:
    with forge_double("gitea", branches=lambda: ["main", BRANCH]) as forge:
        url = pull_request.open_pull_request(
            "forgejo", None, forge.repository_url, TOKEN, Proposal(BRANCH, "main", "t", "b"), lambda: False
        )
        assert url == forge.link(forge.pulls[0])


@pytest.mark.parametrize(
    ("kind", "repository", "api"),
    [
        ("github", "https://github.com/team/site.git", "https://api.github.com"),
        ("github", "https://code.example.com/team/site", "https://code.example.com/api/v3"),
        ("github", "https://octo.ghe.com/team/site", "https://api.octo.ghe.com"),
        ("gitlab", "https://gitlab.com/a/b/c.git", "https://gitlab.com/api/v4"),
        ("gitea", "http://git.example.com:3000/team/site", "http://git.example.com:3000/api/v1"),
        ("forgejo", "https://codeberg.org/team/site", "https://codeberg.org/api/v1"),
        ("pagure", "https://pagure.io/site.git", "https://pagure.io/api/0"),
    ],
)
def test_the_api_follows_from_the_repository(kind: forges.Forge, repository: str, api: str) -> None:
    assert pull_request.default_api_base(kind, repository) == api


@pytest.mark.parametrize(
    "base", ["", "gitlab.com", "https://user:secret@x/api", "https://x/api?a=b", "ftp://x", "https://[/"]
)
def test_what_is_no_api_base_is_refused_and_not_repeated(base: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        pull_request.check_api_base(base)
    assert "secret" not in str(raised.value)


def _project(forge: ForgeDouble) -> str:
    named: dict[ForgeKind, str] = {"gitlab": "projects/team%2Fsite", "pagure": "team/site"}
    return named.get(forge.kind, "repos/team/site")


def _pulls(forge: ForgeDouble) -> str:
    return {"gitlab": "merge_requests", "pagure": "pull-requests"}.get(forge.kind, "pulls")


def _head(forge: ForgeDouble) -> str:
    return {
        "github": f"state=all&head=team:{BRANCH}",
        "gitlab": f"state=all&source_branch={BRANCH}",
        "gitea": "state=all&limit=50",
        "pagure": "status=All&per_page=100",
    }[forge.kind]
