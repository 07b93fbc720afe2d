"""The page Why: the explanation of a user agent, the most frequent user agents, and the search of agents."""

import re
from html import unescape

import pytest

from ingest.hits.evidence import ACCEPT_CHARACTERS_MAX
from ingest.hits.hit import USER_AGENT_CHARACTERS_MAX
from tests.api.dashboard.site import FIREFOX, Dashboard
from tests.processes.running import PROJECT, new_key

PATH = f"/projects/{PROJECT}/why"
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
YANDEXBOT = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)"
XSS = "<script>alert(1)</script>"


def page(dashboard: Dashboard, project: str = PROJECT, status: int = 200, **parameters: str) -> str:
    response = dashboard.visitor("viewer").get(f"/projects/{project}/why", params=parameters)
    assert response.status_code == status
    return str(response.text)


@pytest.mark.long
def test_explanation_names_the_class_the_bot_and_the_rule(dashboard: Dashboard) -> None:
    for user_agent, verdict, rule in (
        (GPTBOT, "Counts as AI: GPTBot", "ai:GPTBot"),
        (FIREFOX, "Counts as a person", "human:browser"),
        ("curl/8.5.0", "Counts as another bot: curl", "bot:http-library:curl"),
        (YANDEXBOT, "Counts as another bot: YandexBot", "bot:crawler-user-agents:yandex.com/bots"),
        ("", "Counts as another bot", "bot:empty-user-agent"),
        ("x", "Counts as another bot", "bot:not-a-browser"),
    ):
        text = page(dashboard, userAgent=user_agent)
        assert f">{verdict}</h2>" in re.sub(r"\s*\n\s*", "", text)
        assert f"<code>{rule}</code>" in text
    assert "<mark>BOT</mark>" in page(dashboard, userAgent="SOME BOT"), "also lower case is matched"


def test_matched_text_is_marked_and_later_steps_are_listed(dashboard: Dashboard) -> None:
    text = page(dashboard, userAgent=GPTBOT)
    assert "compatible; <mark>GPTBot</mark>/1.3" in text
    assert 'href="https://developers.openai.com/api/docs/bots"' in text
    assert text.count("not tried") == 6
    assert f'href="/projects/{PROJECT}/ai/agents/GPTBot"' in text


@pytest.mark.long
def test_accept_header_decides_for_a_user_agent_without_a_name_and_is_a_step(dashboard: Dashboard) -> None:
    text = page(dashboard, userAgent=f"{FIREFOX} text/markdown", accept="text/markdown, */*")
    assert "Counts as AI" in text
    assert "<code>ai:accept-markdown</code>" in text
    assert "<mark>" not in text
    assert "/ai/agents/" not in text
    assert text.count("not tried") == 4  # all steps from the habits of bots on
    text = page(dashboard, userAgent=GPTBOT, accept="text/markdown")
    assert "<code>ai:GPTBot</code>" in text
    assert text.count("not tried") == 7
    text = page(dashboard, userAgent="", accept="text/markdown")  # a named bot without a name: the header decides first
    assert "Bots with a name <span" in text
    assert 'Accept header <span class="muted">not tried' not in text
    assert "Counts as a person" in page(dashboard, userAgent=FIREFOX, accept="text/html")
    text = page(dashboard, userAgent=FIREFOX, accept="x" * (ACCEPT_CHARACTERS_MAX + 1), status=400)
    assert "An Accept header has at most 8,192 characters; this one has 8,193." in text


def test_page_without_a_user_agent_explains_nothing(dashboard: Dashboard) -> None:
    text = page(dashboard)
    assert "Counts as" not in text
    assert "Explain a request" in text


def test_long_user_agent_is_explained_and_a_longer_one_refused(dashboard: Dashboard) -> None:
    text = page(dashboard, userAgent="x" * 2_000)
    assert "The last 976 characters are not read." in text
    text = page(dashboard, userAgent="x" * (USER_AGENT_CHARACTERS_MAX + 1), status=400)
    assert "A user agent has at most 16,384 characters; this one has 16,385." in text
    assert "Counts as" not in text


def test_markup_in_a_user_agent_is_shown_as_text(dashboard: Dashboard) -> None:
    for form in ("{}", "GPTBot {}", "{} bot", "Mozilla/5.0 (X11; {}) Gecko/1"):
        text = page(dashboard, userAgent=form.format(XSS), search=XSS)
        assert "<script>alert" not in text
        assert XSS in unescape(text.replace("<mark>", "").replace("</mark>", ""))


def test_most_frequent_user_agents_of_each_class_lead_to_their_explanation(dashboard: Dashboard) -> None:
    key = new_key(dashboard.data, "frequent")
    sent = {GPTBOT: 3, FIREFOX: 2, f"curl/8.5.0 {XSS}": 1, "": 1}
    hits = [{"path": "/", "userAgent": each} for each, views in sent.items() for _ in range(views)]
    dashboard.post_hits(*hits, project="frequent", key=key)
    text = page(dashboard, "frequent")
    assert "<script>alert" not in text
    assert "(no user agent)" in text
    people, ai, bots = (part.split("</table>")[0] for part in text.split("<table>")[1:4])
    assert FIREFOX in people
    assert GPTBOT in ai
    assert "<code>bot:http-library:curl</code>" in bots
    assert '<td class="number">3</td>' in ai
    link = unescape(ai.split('href="')[1].split('"')[0])
    assert "Counts as AI" in dashboard.visitor("viewer").get(link).text


def test_project_without_views_has_no_user_agents(dashboard: Dashboard) -> None:
    new_key(dashboard.data, "unread")
    assert page(dashboard, "unread").count("No views in the last 7 days.") == 3


def test_agents_are_found_by_name_operator_and_token(dashboard: Dashboard) -> None:
    assert "<code>GPTBot</code>" in page(dashboard, search="gptb")
    text = page(dashboard, search="anthropic")
    assert "ClaudeBot" in text
    assert "GPTBot" not in text
    assert "No known AI agent has “nobody” in its name" in page(dashboard, search="nobody")
