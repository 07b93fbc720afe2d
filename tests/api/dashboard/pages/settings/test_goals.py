"""Goals: added and removed by owners, with faults beside the fields, and counted on the overview."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api.accounts import share_links
from api.dashboard.pages.reading.panels import goals as card
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.overview.overview_page import FIREFOX
from tests.api.dashboard.site import Dashboard, opened, post
from tests.processes.running import PROJECT, new_key, readership_process
from warehouse.control import goals

PATH = f"/projects/{PROJECT}/goals"


def test_faulty_goal_is_explained_and_not_added(dashboard: Dashboard) -> None:
    for name, kind, value, message in (
        (" ", "path", "/a", "fill in"),
        ("x" * 121, "path", "/a", "at most 120"),
        ("order", "page", "/a", "Choose one of: path, event."),
        ("order", "event", "x" * 121, "at most 120"),
        ("a\0b", "event", "a", "printable"),
    ):
        response = post(dashboard.visitor("owner"), PATH, name=name, kind=kind, value=value)
        assert response.status_code == 422
        assert message in Html(response.text).text
    assert goals.of_project(dashboard.engine, PROJECT) == []


@pytest.mark.long
def test_goal_is_counted_on_the_overview_until_it_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    with opened(tmp_path / "data") as dashboard:
        for address, path in (("203.0.113.1", "/thanks"), ("203.0.113.1", "/thanks"), ("203.0.113.2", "/a")):
            hit = {"path": path, "userAgent": FIREFOX, "address": address}
            dashboard.post_hits({**hit, "timestamp": (now - timedelta(days=2)).isoformat()})
        unknown = {"path": "/x", "userAgent": FIREFOX, "timestamp": (now - timedelta(days=2)).isoformat()}
        dashboard.post_hits(unknown, {**unknown, "address": "203.0.113.1", "referrer": "https://www.google.com/"})
        owner, viewer = dashboard.visitor("owner"), dashboard.visitor("viewer")
        overview = f"/projects/{PROJECT}?period=7d"
        assert "Goals" not in re.findall("<h2>(.*)</h2>", viewer.get(overview).text)

        for name, value in (("<b>Order", "/thanks/"), ("Nothing", "/none"), ("Unknown", "/x")):
            assert post(owner, PATH, name=name, kind="path", value=value).headers["location"] == PATH
        assert (
            "The name is taken: another goal is named 'Nothing'."
            in Html(post(owner, PATH, name="Nothing", kind="event", value="a").text).text
        )

        assert Html(viewer.get(overview).text).rows("Goals") == [
            ["<b>Order", "2", "1", "50%"],
            ["Nothing", "0", "0", "0%"],
            ["Unknown", "2", "1", "50%"],
        ]
        token = share_links.create(dashboard.engine, PROJECT, "press", 0)[1]
        shared = dashboard.visitor(None).get(f"/shared/{token}?period=7d").text
        assert Html(shared).rows("Goals") == Html(viewer.get(overview).text).rows("Goals")
        assert f"/shared/{token}?period=7d&amp;goal=Nothing" in shared
        assert "share of all visitors" in viewer.get(overview).text
        of_goal = viewer.get(f"{overview}&goal=%3Cb%3EOrder").text
        assert Html(of_goal).rows("<b>Order") == [["Direct", "2", "1", "50%"], ["Search", "2", "1", "100%"]]
        assert "share of a channel's visitors" in of_goal
        assert "share of all visitors" not in of_goal
        [search] = re.findall('href="([^"]*)" title="Show Search only"', of_goal[of_goal.index('id="goals"') :])
        assert Html(viewer.get(search.replace("&amp;", "&")).text).rows("Goals")[0] == ["<b>Order", "2", "1", "100%"]
        assert "There is no such goal" in viewer.get(f"{overview}&goal=None").text
        assert "There is no such goal" not in viewer.get(f"{overview}&goal=None&traffic=ai").text
        with monkeypatch.context() as patched:
            patched.setattr(card, "ROWS_MAX", 4)  # of five
            assert "Goals are counted for shorter periods only." in viewer.get(overview).text
        assert "New goal" not in viewer.get(PATH).text
        [order] = [each for each in goals.of_project(dashboard.engine, PROJECT) if each.value == "/thanks"]
        assert post(owner, f"{PATH}/{order.id}/remove").headers["location"] == PATH
        assert post(owner, f"{PATH}/{order.id}/remove").status_code == 404
        assert [row[0] for row in Html(viewer.get(overview).text).rows("Goals")] == ["Nothing", "Unknown"]


@pytest.mark.long
def test_goals_of_a_small_project_are_counted_beside_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    view = {"path": "/a", "userAgent": FIREFOX, "timestamp": (datetime.now(UTC) - timedelta(days=2)).isoformat()}
    with opened(data) as dashboard:
        dashboard.post_hits(view)
        dashboard.post_hits(*[view] * 9, project="large", key=new_key(data, "large"))
        for project in (PROJECT, "large"):
            goals.add(dashboard.engine, project, "Reads", "path", "/a")
        assert readership_process("--data", str(data), "flush").returncode == 0
        monkeypatch.setattr(card, "ROWS_MAX", 5)
        viewer = dashboard.visitor("viewer")
        for project, has_goals in ((PROJECT, True), ("large", False)):
            page = Html(viewer.get(f"/projects/{project}?period=7d").text)
            assert [row[0] for row in page.rows("Goals")] == ["Reads"] * has_goals
            assert ("Goals are counted for shorter periods only." in page.text) is not has_goals
