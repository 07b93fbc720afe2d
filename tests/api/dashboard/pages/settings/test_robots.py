"""The robots.txt of a site: saved, shown, removed, and refused with the reason."""

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
    texts.remove(dashboard.engine, PROJECT)


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
    client = dashboard.visitor("viewer")
    page = Html(client.get(PATH).text)
    assert "An owner can add it." in page.text
    assert not any(tag == "textarea" for tag, _ in page.tags)
    assert post(client, PATH, robots=CONTENT).status_code == 403


def test_removed_text_is_gone(dashboard: Dashboard, owner: TestClient) -> None:
    post(owner, PATH, robots=CONTENT)
    page = owner.get(PATH).text
    assert page.index("<summary>Remove the text") < page.index(f'action="{PATH}/remove"') < page.index("</details>")
    response = post(owner, f"{PATH}/remove")
    assert (response.status_code, response.headers["location"]) == (303, f"{PATH}?notice=removed")
    assert texts.find(dashboard.engine, PROJECT) is None
    assert post(owner, f"{PATH}/remove").status_code == 303


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "Paste the text of your robots.txt."),
        (" \r\n ", "Paste the text of your robots.txt."),
        ("<html>Not found</html>", "no line begins with “User-agent:”"),
        ("User-agent: *\0", "The text has a NUL character"),
        ("User-agent: *\n" + "#" * texts.BYTES_MAX, "The text has 512 KiB"),
        ("User-agent: *\n" + "Disallow: /*/a\n" * 501, "The group “*” has 501 rules; at most 500 in one group are"),
        ("User-agent: *\n" + "é" * (texts.BYTES_MAX // 2), "The text has 512 KiB"),
    ],
)
def test_wrong_text_is_refused_with_the_reason_and_shown_again(
    dashboard: Dashboard, owner: TestClient, content: str, fault: str
) -> None:
    response = post(owner, PATH, robots=content)
    assert response.status_code == 422
    page = Html(response.text)
    assert fault in page.text
    assert content.strip() in "".join(page.texts)
    assert texts.find(dashboard.engine, PROJECT) is None


def test_largest_text_is_saved(dashboard: Dashboard, owner: TestClient) -> None:
    content = "User-agent: *\n" + "é" * ((texts.BYTES_MAX - 14) // 2)
    assert post(owner, PATH, robots=content).status_code == 303
    saved = texts.find(dashboard.engine, PROJECT)
    assert saved is not None
    assert len(saved.content.encode()) == texts.BYTES_MAX


def test_form_that_is_too_large_is_refused(owner: TestClient) -> None:
    assert post(owner, PATH, robots="é" * texts.BYTES_MAX).status_code == 413
