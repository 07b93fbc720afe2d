"""Pull request of a branch at each forge: exactly one, also after lost responses, redirects and outages."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agent import retry
from agent.errors import ForgeUnavailable, TurnFailed, TurnStopped
from agent.forge import forges, pull_request
from agent.forge.forges import Proposal
from tests.agent.forge_doubles.double import ForgeDouble, ForgeKind
from tests.agent.forge_doubles.server import forge_double
from tests.agent.servers.dripping import dripping
from tests.processes.waiting import until

BRANCH = "readership/j1"
TOKEN = "forge-token"
SLOW_RESPONSE = (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n[", b" ")
PULLS = "repos/team/site/pulls"
KINDS: tuple[ForgeKind, ...] = ("github", "gitlab", "gitea")


@pytest.fixture(params=KINDS)
def forge(request: pytest.FixtureRequest) -> Iterator[ForgeDouble]:
    with forge_double(request.param, branches=lambda: ["main", "release/2", BRANCH]) as double:
        yield double


@pytest.fixture
def github() -> Iterator[ForgeDouble]:
    """Return the double of one forge, for tests of code that all forges share."""
    with forge_double("github", branches=lambda: ["main", "release/2", BRANCH]) as double:
        yield double


def open_pull_request(forge: ForgeDouble, **options: Any) -> str:
    values = {"token": TOKEN, "base": "main", "title": "Fix it", "body": "As asked.", "stopped": False, **options}
    return pull_request.open_pull_request(
        forge.kind,
        values.get("api", forge.api),
        forge.repository_url,
        values["token"],
        Proposal(BRANCH, values["base"], values["title"], values["body"]),
        lambda: bool(values["stopped"]),
    )


def test_branch_without_a_pull_request_gets_one(forge: ForgeDouble) -> None:
    assert open_pull_request(forge) == forge.link(forge.pulls[0])
    assert [(each.branch, each.base, each.title, each.body) for each in forge.pulls] == [
        (BRANCH, "main", "Fix it", "As asked.")
    ]


def test_second_call_finds_the_open_pull_request(github: ForgeDouble) -> None:
    assert open_pull_request(github) == open_pull_request(github)
    assert len(github.pulls) == 1
    assert [each[0] for each in github.requests].count("POST") == 1


@pytest.mark.long
def test_pull_request_into_another_base_is_found(forge: ForgeDouble) -> None:
    assert open_pull_request(forge) == open_pull_request(forge, base="release/2")


def test_closed_or_merged_pull_request_is_not_used(forge: ForgeDouble) -> None:
    forge.add(BRANCH, "main", state="closed")
    forge.add(BRANCH, "main", state="merged")
    assert open_pull_request(forge) == forge.link(forge.pulls[2])


def test_pull_request_from_a_fork_with_the_same_branch_name_is_not_used(forge: ForgeDouble) -> None:
    forge.add(BRANCH, "release/2", fork="stranger")
    assert open_pull_request(forge) == forge.link(forge.pulls[1])


def test_pull_request_is_found_among_130_open_ones(forge: ForgeDouble) -> None:
    mine = forge.add(BRANCH, "main")
    for number in range(130):
        forge.add(f"other-{number}", "main")
    assert open_pull_request(forge) == forge.link(mine)


def test_pull_request_is_found_where_pages_are_shorter_than_requested() -> None:
    with forge_double("gitea", branches=lambda: ["main", BRANCH], page_max=7) as forge:
        mine = forge.add(BRANCH, "main")
        for number in range(20):
            forge.add(f"other-{number}", "main")
        assert open_pull_request(forge) == forge.link(mine)
        assert len(forge.requests) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_pull_request_that_was_created_since_the_search_is_found(kind: ForgeKind) -> None:
    with forge_double(kind, branches=lambda: ["main", BRANCH]) as forge:
        forge.before_create = lambda: None if forge.pulls else forge.add(BRANCH, "main") and None
        assert open_pull_request(forge) == forge.link(forge.pulls[0])
    assert len(forge.pulls) == 1


@pytest.mark.long
def test_lost_response_does_not_lead_to_a_second_pull_request(github: ForgeDouble) -> None:
    github.lost = 1
    assert open_pull_request(github) == github.link(github.pulls[0])
    assert [each[0] for each in github.requests].count("POST") == 1, "the retry begins with the search"


def test_pull_request_created_after_the_deadline_is_the_only_one(
    github: ForgeDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_request, "TIMEOUT_S", 1)
    monkeypatch.setattr(retry, "PAUSES_S", (0.05, 0.05))
    slow: list[threading.Thread] = []

    def take_long() -> None:
        if not slow:
            slow.append(threading.current_thread())
            until(lambda: github.pulls)  # a later request has created it

    github.before_create = take_long
    url = open_pull_request(github)
    slow[0].join()
    assert [github.link(each) for each in github.pulls] == [url]


def test_stopped_turn_creates_no_pull_request(github: ForgeDouble) -> None:
    with pytest.raises(TurnStopped):
        open_pull_request(github, stopped=github.requests)
    assert github.pulls == []


def test_turn_that_is_stopped_during_the_creation_gets_its_response(github: ForgeDouble) -> None:
    stopped: list[bool] = []

    def take_a_while() -> None:
        stopped.append(True)
        threading.Event().wait(0.5)

    github.before_create = take_a_while
    assert open_pull_request(github, stopped=stopped) == github.link(github.pulls[0])


@pytest.mark.long
def test_response_byte_by_byte_ends_at_the_deadline(github: ForgeDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_request, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(retry, "PAUSES_S", (0.05, 0.05))
    with dripping(*SLOW_RESPONSE) as drip, pytest.raises(ForgeUnavailable, match=r"did not answer within 0.3 s"):
        open_pull_request(github, api=drip.url)
    assert (drip.requests, drip.completed) == (3, 0)


def test_stop_ends_the_wait_for_a_slow_response(github: ForgeDouble) -> None:
    with dripping(*SLOW_RESPONSE) as drip:
        with pytest.raises(TurnStopped):
            pull_request.open_pull_request(
                "github",
                drip.url,
                github.repository_url,
                TOKEN,
                Proposal(BRANCH, "main", "t", "b"),
                lambda: drip.requests > 0,
            )
        assert (drip.requests, drip.completed) == (1, 0)


@pytest.mark.long
def test_rate_limit_of_two_seconds_is_waited_for(github: ForgeDouble) -> None:
    github.upsets = [(429, {"message": "slow down"}, {"Retry-After": "2"})]
    assert open_pull_request(github) == github.link(github.pulls[0])


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry-After": "3600"}),
        (403, {"Retry-After": "3600"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}),
        (503, {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}),
    ],
)
def test_rate_limit_of_an_hour_fails_the_turn(github: ForgeDouble, status: int, headers: dict[str, str]) -> None:
    github.upsets = [(status, {"message": "API rate limit exceeded"}, headers)]
    with pytest.raises(ForgeUnavailable, match="API rate limit exceeded; it asks for a pause of"):
        open_pull_request(github)
    assert len(github.requests) == 1


@pytest.mark.parametrize(
    ("kind", "needed"),
    [("github", "Pull requests: read and write"), ("gitlab", "scopes api"), ("gitea", "scope write:repository")],
)
def test_error_for_a_read_only_token_has_the_required_rights(kind: ForgeKind, needed: str) -> None:
    with (
        forge_double(kind, tokens={"read-token": "read"}) as forge,
        pytest.raises(
            TurnFailed, match=f"{forges.FORGES[kind].name} forbids the request .403.; the token needs .*{needed}"
        ),
    ):
        open_pull_request(forge, token="read-token")


def test_error_for_a_wrong_token_does_not_repeat_it(github: ForgeDouble) -> None:
    with pytest.raises(TurnFailed, match=r"does not accept the token \(401\)") as raised:
        open_pull_request(github, token="a-wrong-token")
    assert "a-wrong-token" not in str(raised.value)


def test_token_in_a_response_is_redacted(github: ForgeDouble) -> None:
    github.upsets = [(400, {"message": f"bad header {TOKEN}"}, {})]
    with pytest.raises(TurnFailed, match=r"bad header \[token\]"):
        open_pull_request(github)


def test_error_for_a_missing_repository_names_it(forge: ForgeDouble) -> None:
    forge.path = "somebody/else"
    url = forge.repository_url.replace("somebody/else", "team/site")
    with pytest.raises(TurnFailed, match=r"has no team/site at .* \(404\)"):
        pull_request.open_pull_request(
            forge.kind, forge.api, url, TOKEN, Proposal(BRANCH, "main", "t", "b"), lambda: False
        )


@pytest.mark.parametrize("base", ["v1.0", "0123456789012345678901234567890123456789", "gone"])
def test_error_for_a_base_that_is_not_a_branch_names_it(forge: ForgeDouble, base: str) -> None:
    forge.tags = ("v1.0",)
    reason = "has no branch '{}'.*not a tag or a commit"
    with pytest.raises(TurnFailed, match=reason.format(base)):
        open_pull_request(forge, base=base)
    assert forge.pulls == []


def test_full_name_of_a_base_with_a_slash_is_accepted(github: ForgeDouble) -> None:
    open_pull_request(github, base="refs/heads/release/2")
    assert github.pulls[0].base == "release/2"


def test_redirect_within_the_host_is_followed(github: ForgeDouble) -> None:
    github.upsets = [(301, b"", {"Location": f"{github.api}/{PULLS}?state=all&head=team:{BRANCH}"})]
    assert open_pull_request(github) == github.link(github.pulls[0])


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirect_to_another_host_does_not_get_the_token(github: ForgeDouble, status: int) -> None:
    with forge_double(github.kind) as other:
        github.upsets = [(status, b"", {"Location": f"{other.api}/{PULLS}"})]
        with pytest.raises(TurnFailed, match="redirects to another host"):
            open_pull_request(github)
        assert other.requests == []


def test_endless_redirect_is_refused(github: ForgeDouble) -> None:
    github.upsets = [(302, b"", {"Location": "/again"})] * 4
    with pytest.raises(TurnFailed, match="redirects more than 3 times"):
        open_pull_request(github)


def test_html_page_is_refused_with_a_hint_at_the_api_base(github: ForgeDouble) -> None:
    github.upsets = [(200, b"<html>Sign in</html>", {})]
    with pytest.raises(TurnFailed, match="check the project's API base"):
        open_pull_request(github)


def test_long_title_and_body_are_truncated(github: ForgeDouble) -> None:
    open_pull_request(github, title="many\nwords " * 100, body="x" * 100_000)
    assert len(github.pulls[0].title) <= 255
    assert github.pulls[0].title.startswith("many words many")


@pytest.mark.parametrize("kind", KINDS)
def test_installation_below_a_path_is_reached_by_its_api_base(kind: ForgeKind) -> None:
    with forge_double(kind, under="/code/git", branches=lambda: ["main", BRANCH]) as forge:
        assert open_pull_request(forge) == forge.link(forge.pulls[0])


def test_forgejo_uses_the_api_of_gitea() -> None:
    with forge_double("gitea", branches=lambda: ["main", BRANCH]) as forge:
        url = pull_request.open_pull_request(
            "forgejo", None, forge.repository_url, TOKEN, Proposal(BRANCH, "main", "t", "b"), lambda: False
        )
        assert url == forge.link(forge.pulls[0])
