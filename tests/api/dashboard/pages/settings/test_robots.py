"""The robots.txt of a site: saved, shown, removed, and refused with the reason."""

import re

import pytest
from starlette.testclient import TestClient

from api.dashboard.robots import texts
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import Dashboard, post
from tests.processes.running import PROJECT

PATH = f"/projects/{PROJECT}/ai/robots"
CONTENT = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\nUser-agent: *\nDisallow: /admin </textarea><script>\n"


@pytest.fixture(autouse=True)
def _no_text(dashboard: Dashboard) -> None:
    for text in texts.versions(dashboard.engine, PROJECT):
        texts.remove(dashboard.engine, PROJECT, text.since_s)


@pytest.fixture
def owner(dashboard: Dashboard) -> TestClient:
    return dashboard.visitor("owner")


def test_saved_text_is_shown_with_what_it_allows(dashboard: Dashboard, owner: TestClient) -> None:
    response = post(owner, PATH, robots=CONTENT)
    assert (response.status_code, response.headers["location"]) == (303, f"{PATH}?notice=saved")
    for client in (owner, dashboard.visitor("viewer")):
        text = client.get(f"{PATH}?notice=saved").text
        assert "<script>" not in text
        page = Html(text)
        assert "The text is saved." in page.text
        assert CONTENT.strip() in "".join(page.texts)
        assert page.rows("What it allows AI agents") == [
            ["CCBotCommon Crawl", "Disallowed"],
            ["GPTBotOpenAI", "Disallowed"],
            ["Every other agentgroup*", "Partly disallowed"],
        ]


def test_viewer_has_no_form(dashboard: Dashboard) -> None:
    page = Html(dashboard.visitor("viewer").get(PATH).text)
    assert "An owner can add it." in page.text
    assert not any(tag == "textarea" for tag, _ in page.tags)


def test_removed_text_is_gone(dashboard: Dashboard, owner: TestClient) -> None:
    post(owner, PATH, robots=CONTENT)
    page = owner.get(PATH).text
    assert page.index("<summary>Remove this text") < page.index(f'action="{PATH}/remove"') < page.index("</details>")
    (text,) = texts.versions(dashboard.engine, PROJECT)
    for since in ("", "9" * 40, str(text.since_s + 1)):
        assert post(owner, f"{PATH}/remove", since=since).status_code == 303
    assert texts.versions(dashboard.engine, PROJECT) == [text]
    response = post(owner, f"{PATH}/remove", since=str(text.since_s))
    assert (response.status_code, response.headers["location"]) == (303, f"{PATH}?notice=removed")
    assert texts.versions(dashboard.engine, PROJECT) == []


def test_changed_text_is_another_version_from_its_time_on(dashboard: Dashboard, owner: TestClient) -> None:
    post(owner, PATH, robots="User-agent: *\nDisallow: /old", since="2026-09-01T08:30")
    post(owner, PATH, robots=CONTENT)
    post(owner, PATH, robots=CONTENT)  # changes nothing
    post(owner, PATH, robots="User-agent: *\nDisallow: /older", since="2026-08-01T00:00")
    post(owner, PATH, robots=CONTENT, since="2026-07-01T00:00")  # was in force before, too
    oldest, older, old, new = texts.versions(dashboard.engine, PROJECT)
    assert [each.content for each in (oldest, older, new)] == [CONTENT, "User-agent: *\nDisallow: /older", CONTENT]
    assert old.since_s == 1788251400
    assert CONTENT.strip() in "".join(Html(owner.get(PATH).text).texts)
    page = owner.get(f"{PATH}?since={old.since_s}").text
    assert 'value="2026-09-01T08:30:00"' in page
    assert re.findall(r'<a href="[^"]+since=(\d+)', page.partition("<h2>Versions")[2]) == [
        str(each.since_s) for each in (new, old, older, oldest)
    ]
    shown = "".join(Html(page).texts)
    assert "/old" in shown
    assert CONTENT.strip() not in shown


def test_wrong_time_is_refused(dashboard: Dashboard, owner: TestClient) -> None:
    outside = "Choose a time from 1995 until now."
    for since, fault in {
        "2999-01-01T00:00Z": outside,
        "yesterday": "Write the time as 2026-09-30T18:00.",
        "2999-01-01T00:00": outside,
        "1994-12-31T23:59": outside,
        "0001-01-01T00:00": outside,
    }.items():
        response = post(owner, PATH, robots=CONTENT, since=since)
        assert (response.status_code, fault in Html(response.text).text) == (422, True)
    assert texts.versions(dashboard.engine, PROJECT) == []


def test_project_has_a_maximum_of_texts(dashboard: Dashboard, owner: TestClient) -> None:
    for number in range(texts.VERSIONS_MAX):
        texts.save(dashboard.engine, PROJECT, f"User-agent: *\nDisallow: /{number}", 1_790_000_000 + number)
    response = post(owner, PATH, robots=CONTENT)
    assert (response.status_code, "has 20 texts, which is the maximum" in response.text) == (422, True)
    assert len(texts.versions(dashboard.engine, PROJECT)) == texts.VERSIONS_MAX


@pytest.mark.long
def test_wrong_text_is_refused_with_the_reason_and_shown_again(dashboard: Dashboard, owner: TestClient) -> None:
    for content, fault in {
        "": "Paste the text of your robots.txt.",
        " \r\n ": "Paste the text of your robots.txt.",
        "<html>Not found</html>": "no line begins with “User-agent:”",
        "User-agent: *\0": "The text has a NUL character",
        "User-agent: *\n" + "#" * texts.BYTES_MAX: "The text has 512 KiB",
        "User-agent: *\n" + "Disallow: /*/a\n" * 501: "The group “*” has 501 rules; at most 500 in one group are",
        "User-agent: *\n" + "é" * (texts.BYTES_MAX // 2): "The text has 512 KiB",
    }.items():
        response = post(owner, PATH, robots=content)
        assert response.status_code == 422
        page = Html(response.text)
        assert fault in page.text
        assert content.strip() in "".join(page.texts)
    assert post(owner, PATH, robots="é" * texts.BYTES_MAX).status_code == 413
    assert texts.versions(dashboard.engine, PROJECT) == []


@pytest.mark.long
def test_largest_text_is_saved(dashboard: Dashboard, owner: TestClient) -> None:
    content = "User-agent: *\n" + "é" * ((texts.BYTES_MAX - 14) // 2)
    assert post(owner, PATH, robots=content).status_code == 303
    (saved,) = texts.versions(dashboard.engine, PROJECT)
    assert len(saved.content.encode()) == texts.BYTES_MAX
