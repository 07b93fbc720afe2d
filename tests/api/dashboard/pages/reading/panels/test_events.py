"""Events on the overview, each with its values, and the files that AI downloaded."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api.dashboard.pages.reading.panels import goals
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.overview.overview_page import FIREFOX
from tests.api.dashboard.site import opened
from tests.processes.running import PROJECT
from warehouse.report.audience import visitors

GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.3; +https://openai.com/gptbot)"


@pytest.mark.long
def test_events_are_listed_with_their_values_and_downloads_of_ai(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = (datetime.now(UTC) - timedelta(days=2)).isoformat()
    person = {"path": "/a", "userAgent": FIREFOX, "address": "203.0.113.1", "timestamp": at}
    agent = {"path": "/set.zip", "userAgent": GPTBOT, "timestamp": at}
    with opened(tmp_path / "data") as dashboard:
        dashboard.post_hits(person, {**agent, "path": "/b"})
        viewer, overview = dashboard.visitor("viewer"), f"/projects/{PROJECT}?period=7d"
        assert "<h2>Events</h2>" not in viewer.get(overview).text
        assert "Downloads by AI" not in viewer.get(f"/projects/{PROJECT}/ai?period=7d").text

        download = {"name": "File Download", "props": {"url": "/set.zip"}}
        events = [
            *[{**person, "name": "<b>Sale", "props": {"plan": "pro"}}] * 2,
            {"path": "/b", "userAgent": FIREFOX, "timestamp": at, "name": "<b>Sale"},
            {**person, **download},
            {**agent, **download},
        ]
        dashboard.post_hits(*events, kind="events")

        page = Html(viewer.get(overview).text)
        assert page.rows("Events") == [["<b>Sale", "3", "1"], ["File Download", "1", "1"]]
        of_name = Html(viewer.get(f"{overview}&event=%3Cb%3ESale").text)
        assert of_name.rows("<b>Sale") == [["/a", "2", "1"], ["/b", "1", "\u2013"]]
        assert Html(viewer.get(f"{overview}&event=File+Download").text).rows("File Download") == [
            ["/set.zip", "1", "1"]
        ]
        assert "No such event in this period." in viewer.get(f"{overview}&event=None").text
        direct = f"{overview}&channel=Direct"
        assert Html(viewer.get(direct).text).rows("Events") == [["<b>Sale", "2", "1"], ["File Download", "1", "1"]]
        assert Html(viewer.get(f"{direct}&event=%3Cb%3ESale").text).rows("<b>Sale") == [["/a", "2", "1"]]
        assert "<h2>Events</h2>" not in viewer.get(f"{overview}&channel=Search").text
        with monkeypatch.context() as patched:
            patched.setattr(goals, "ROWS_MAX", 1)
            assert "With these filters, events are counted for shorter periods only." in viewer.get(direct).text
            assert Html(viewer.get(overview).text).rows("Events")

        assert dashboard.get_report("events?by=channel")["events"][0]["value"] == "Direct"
        headers = {"Authorization": f"Bearer {dashboard.key}"}
        with monkeypatch.context() as patched:
            patched.setattr(visitors, "VIEWS_MAX", -1)
            refused = dashboard.client.get(f"/v1/analytics/{PROJECT}/events?by=country", headers=headers)
            assert refused.status_code == 400
            assert refused.json()["detail"].startswith("dateFrom: the range has 0 views of the project, and the limit")

        ai = Html(viewer.get(f"/projects/{PROJECT}/ai?period=7d").text)
        assert ai.rows("Downloads by AI") == [["/set.zipGPTBot", "1"]]
        of_file = viewer.get(f"/projects/{PROJECT}/ai?period=7d&path=/set.zip").text
        assert "period=7d&amp;path=%2Fset.zip" in viewer.get(f"/projects/{PROJECT}/ai?period=7d").text
        assert "No reads by AI" in of_file
        assert Html(of_file).rows("Downloads by AI") == [["/set.zipGPTBot", "1"]]
        of_ai = Html(viewer.get(f"{overview}&traffic=ai").text)
        assert of_ai.rows("Events") == [["File Download", "1", "\u2013"]]
        assert of_ai.tables["Events"][0] == ["Event", "Times", "AI clients"]
