"""The page of an AI agent: facts, numbers of the API, robots.txt, user agents, and names that nobody knows."""

from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient

from api.dashboard.robots import texts
from tests.api.dashboard.days import before
from tests.api.dashboard.pages.reading.ai.ai_traffic import ATTACK, SOME_QUERIES, WRONG, api_query, numbers, open_page
from tests.api.dashboard.site import Dashboard
from tests.processes.running import PROJECT

AGENT = "/ai/agents/GPTBot"


@pytest.fixture
def robots(read_site: Dashboard) -> Iterator[Dashboard]:
    """Yield the dashboard, whose robots.txt of this test is removed at its end."""
    yield read_site
    for text in texts.versions(read_site.engine, PROJECT):
        texts.remove(read_site.engine, PROJECT, text.since_s)


@pytest.mark.parametrize(("parameters", "expected"), SOME_QUERIES, ids=str)
def test_numbers_are_those_of_the_api(
    read_site: Dashboard, reader: TestClient, parameters: dict[str, str | int], expected: dict[str, str | int]
) -> None:
    query = f"agent=GPTBot&{api_query(expected)}"
    views = read_site.get_report(f"views?limit=25&{query}")
    page = open_page(reader, AGENT, **parameters)
    assert [(row[0], *numbers(row[1:])) for row in page.rows("Pages that GPTBot read")] == [
        (row["path"], row["ai"]) for row in views["views"]
    ]
    if not views["views"]:
        assert "No reads by AI in this period" in page.text
        return
    assert f"Reads {views['totals']['ai']} Pages read" in page.text
    for by, heading, names in (("status", "Status", {}), ("format", "Formats", {"text/html": "HTML"})):
        rows = read_site.get_report(f"breakdown?by={by}&{query}")["rows"]
        known = {"text/markdown": "Markdown", None: "Not recorded"} | names
        assert [(row[0], *numbers(row[1:])) for row in page.rows(heading)] == [
            (known.get(row["value"], row["value"]), row["ai"]) for row in rows
        ]


def test_facts_are_those_of_the_table_of_agents(reader: TestClient) -> None:
    page = open_page(reader, AGENT)
    for fact in ("Operator OpenAI", "Recognised by GPTBot in the user agent", "Rule ai:GPTBot", "Purpose Training"):
        assert fact in page.text
    assert "https://developers.openai.com/api/docs/bots" in page.links()


def test_errors_of_the_agent_are_linked_from_its_page(reader: TestClient) -> None:
    page = open_page(reader, AGENT, period="7d", verification="verified")
    assert f"/projects/{PROJECT}/errors?period=7d&agent=GPTBot" in page.links()


def test_user_agent_has_its_rule_and_a_link_to_why(reader: TestClient) -> None:
    page = open_page(reader, AGENT)
    assert "GPTBot/1.3" in page.texts
    why = next(link for link in page.links() if "/why?" in link)
    assert parse_qs(urlsplit(why).query) == {"userAgent": ["GPTBot/1.3"]}


def test_pages_of_the_table_have_every_path_once(read_site: Dashboard, reader: TestClient) -> None:
    hits = [{"path": f"/long/{number}", "userAgent": "CCBot/2.0"} for number in range(60)]
    read_site.post_hits(*hits)
    paths = [
        row[0]
        for number in ("1", "2", "3")
        for row in open_page(reader, "/ai/agents/CCBot", path="/long/*", page=number).rows("Pages that CCBot read")
    ]
    assert sorted(paths) == sorted(hit["path"] for hit in hits)
    assert "There are no more pages." in open_page(reader, "/ai/agents/CCBot", path="/long/*", page="4").text


def test_known_agent_that_never_read_has_a_page(reader: TestClient) -> None:
    page = open_page(reader, "/ai/agents/Claude Code")
    assert f"Last read never on {PROJECT}" in page.text
    assert "No reads by AI in this period" in page.text


def test_unknown_agent_is_a_page_that_names_it(reader: TestClient) -> None:
    for name in ("NoSuchBot", ATTACK, "a/b", "x" * 300, "a\x00b", "\N{SNOWMAN}"):
        response = reader.get(f"/projects/{PROJECT}/ai/agents/{quote(name)}")
        assert response.status_code == 404
        assert f"Neither the rules nor the reads of {PROJECT} have an AI agent" in response.text
        assert "<script>" not in response.text


def test_wrong_parameter_is_named(reader: TestClient) -> None:
    for query, sentence in (*WRONG, ("page=0", "There is no page “0”")):
        name, _, value = query.partition("=")
        assert sentence in open_page(reader, AGENT, 400, **{name: value}).text


def test_agent_that_obeys_robots_txt(robots: Dashboard, reader: TestClient) -> None:
    for since, (content, sentences) in enumerate(
        (
            ("User-agent: *\nAllow: /", ["Your robots.txt allows GPTBot every page.", "By the group for all agents"]),
            ("User-agent: GPTBot\nDisallow: /admin", ["read none of them in this period", "By the group gptbot"]),
            ("User-agent: CCBot\nDisallow: /", ["Your robots.txt allows GPTBot every page.", "No group is for GPTBot"]),
        )
    ):
        texts.save(robots.engine, PROJECT, content, 1_790_000_000 + since)
        text = open_page(reader, AGENT).text
        assert "still reading" not in text
        assert [sentence for sentence in sentences if sentence not in text] == []


def test_disallowed_agent_that_still_reads_is_named_with_its_pages(robots: Dashboard, reader: TestClient) -> None:
    texts.save(robots.engine, PROJECT, "User-agent: GPTBot\nDisallow: /blog/\n", 1_790_000_000)
    read = robots.get_report(f"breakdown?by=path&agent=GPTBot&path=/blog/*&dateFrom={before(29)}")
    assert 1 < len(read["rows"]) < 5
    page = open_page(reader, AGENT)
    assert "Partly disallowed" in page.text
    assert f"GPTBot read disallowed pages {read['totals']['ai']} times. Import the access log of this time" in page.text
    marked = {row[0] for row in page.rows("Pages that GPTBot read") if row[0].endswith("disallowed")}
    assert marked == {f"{row['value']}disallowed" for row in read["rows"]}


def test_agent_that_answers_a_person_may_ignore_robots_txt(robots: Dashboard, reader: TestClient) -> None:
    texts.save(robots.engine, PROJECT, "User-agent: *\nDisallow: /\n", 1_790_000_000)
    assert "may ignore robots.txt by the rules of its operator" in open_page(reader, "/ai/agents/ChatGPT-User").text
    assert "may ignore robots.txt" not in open_page(reader, AGENT).text


def test_attack_by_path_and_user_agent_is_text(read_site: Dashboard, reader: TestClient) -> None:
    agent = f"DeepSeekBot/1.0 {ATTACK}"
    read_site.post_hits({"path": "/<script>alert(1)</script>", "userAgent": agent})
    page = open_page(reader, "/ai/agents/DeepSeekBot")
    assert agent in page.texts
    assert page.rows("Pages that DeepSeekBot read")[0][0].startswith("/")


def test_lines_that_disallow_an_agent_are_shown_until_robots_has_them(robots: Dashboard, reader: TestClient) -> None:
    lines = "User-agent: GPTBot Disallow: /"
    assert lines in open_page(reader, AGENT).text
    texts.save(robots.engine, PROJECT, "User-agent: *\nDisallow: /blog/\n", 1_790_000_000)
    assert lines in open_page(reader, AGENT).text
    texts.save(robots.engine, PROJECT, "User-agent: GPTBot\nDisallow: /\n", 1_790_000_000)
    assert lines not in open_page(reader, AGENT).text
