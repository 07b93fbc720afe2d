"""The page Set up: the script line, the origins, the test view and what each source has sent."""

import re
import time
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

from tests.api.dashboard.site import FIREFOX, Dashboard, opened, post
from tests.processes.running import PROJECT, new_key
from tests.warehouse.site import NOON
from warehouse.control import projects

PATH = f"/projects/{PROJECT}/setup"
TEST_VIEWS = "views?path=/readership-test"


def test_script_line_has_the_project_and_the_address_of_the_request(dashboard: Dashboard) -> None:
    text = unescape(dashboard.visitor("viewer").get(PATH).text)
    assert f'<script defer src="http://testserver/beacon.js" data-project="{PROJECT}"></script>' in text


def test_script_line_and_links_have_the_base_url(tmp_path: Path) -> None:
    with opened(tmp_path / "data", {"READERSHIP_BASE_URL": "https://example.com/stats"}) as behind_proxy:
        client = behind_proxy.visitor("owner")
        client.cookies.set("__Host-readership_session", client.cookies["readership_session"])
        text = unescape(client.get(PATH, headers={"Host": "internal:8000"}).text)
    assert '<script defer src="https://example.com/stats/beacon.js"' in text
    assert '"https://example.com/stats/v1/analytics/site/hits"' in text
    assert f'action="/stats{PATH}/test"' in text
    assert "internal:8000" not in text


def test_host_that_a_shell_would_execute_is_not_shown(dashboard: Dashboard) -> None:
    text = unescape(dashboard.visitor("viewer").get(PATH, headers={"Host": "x$(id)"}).text)
    assert "$(id)" not in text


def test_refused_site_is_shown_and_an_owner_allows_it(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:
        projects.set_origins(dashboard.engine, PROJECT, ("https://old.example",))
        assert "are refused" not in dashboard.visitor("owner").get(PATH).text
        hits = f"/v1/analytics/{PROJECT}/hits"
        for _ in range(3):
            response = dashboard.client.post(hits, json={"path": "/a"}, headers={"Origin": "https://new.example"})
            assert response.status_code == 403
            assert response.json()["detail"].endswith(": readership project origins site ORIGIN...")
        dashboard.client.post(hits, json={"path": "/a"}, headers={"Origin": "https://x.example/<script>"})
        row = re.compile(r"<code>https://new.example</code></th>\s*<td [^>]*>3</td>")
        viewer = dashboard.visitor("viewer").get(PATH).text
        assert row.search(viewer)
        assert "x.example" not in viewer
        assert "An owner can allow it." in viewer
        assert "Allow https://new.example" not in viewer
        owner = dashboard.visitor("owner")
        text = owner.get(f"{PATH}/arrivals").text
        assert row.search(text)
        [origin] = re.findall(r'name="allowed" value="([^"]*)"><button[^>]*>Allow<', text)
        assert post(owner, f"{PATH}/origins", allowed=origin).status_code == 303
        assert projects.find(dashboard.engine, PROJECT).origins == ("https://old.example", "https://new.example")
        assert not row.search(owner.get(PATH).text)


def test_new_project_begins_with_the_script_and_others_with_what_arrives(tmp_path: Path) -> None:
    def parts() -> list[str]:
        return re.findall(r'<section [^>]*id="(script|arrivals)"', dashboard.visitor("viewer").get(PATH).text)

    with opened(tmp_path / "data") as dashboard:
        projects.set_origins(dashboard.engine, PROJECT, ("https://old.example",))
        assert parts() == ["script", "arrivals"]
        headers = {"Origin": "https://new.example"}
        dashboard.client.post(f"/v1/analytics/{PROJECT}/hits", json={"path": "/a"}, headers=headers)
        assert parts() == ["arrivals", "script"]
        projects.set_origins(dashboard.engine, PROJECT, ("https://new.example",))
        assert parts() == ["script", "arrivals"]
        dashboard.post_hits({"path": "/a", "userAgent": FIREFOX})
        assert parts() == ["arrivals", "script"]


def test_test_view_is_counted_once_and_shown(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    owner.headers["User-Agent"] = FIREFOX
    before = dashboard.get_report(TEST_VIEWS)["totals"]["human"]
    sent = post(owner, f"{PATH}/test")
    assert sent.status_code == 303
    assert dashboard.get_report(TEST_VIEWS)["totals"]["human"] == before + 1
    text = owner.get(sent.headers["location"]).text
    assert "Your test view has arrived" in text
    assert "human:browser" in text
    assert "connected" in text
    part = owner.get(sent.headers["location"].replace("/setup?", "/setup/arrivals?"))
    assert "Your test view has arrived" in part.text
    assert "<html" not in part.text


def test_test_view_that_has_not_arrived_is_waited_for(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    post(owner, f"{PATH}/test")  # an earlier one, which has arrived
    later_ms = int((datetime.now(UTC) + timedelta(minutes=30)).timestamp() * 1_000)
    text = owner.get(f"{PATH}?test={later_ms}").text
    assert "Waiting for the test view" in text
    assert 'hx-trigger="every 5s"' in text


def test_test_view_of_the_same_millisecond_has_arrived(tmp_path: Path) -> None:
    sent = (datetime.now(UTC) - timedelta(seconds=10)).replace(microsecond=123_000)
    with opened(tmp_path / "data") as dashboard:
        dashboard.post_hits({"path": "/readership-test", "userAgent": FIREFOX, "timestamp": sent.isoformat()})
        owner = dashboard.visitor("owner")
        for since, arrived in ((sent, True), (sent + timedelta(milliseconds=2), False)):
            text = owner.get(PATH, params={"test": str(round(since.timestamp() * 1_000))}).text
            assert ("Your test view has arrived" in text) == arrived


def test_other_time_of_a_test_view_is_ignored(dashboard: Dashboard) -> None:
    hour_ago = str(int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1_000))
    owner = dashboard.visitor("owner")
    for value in ("", "x", "-1", "²", "9" * 15, "9" * 400, "1.5", "'", "1", hour_ago):
        response = owner.get(PATH, params={"test": value})
        assert response.status_code == 200
        assert "Waiting for the test view" not in response.text
        assert "Your test view has arrived" not in response.text


def test_source_that_never_sent_is_not_set_up_and_others_have_their_days(dashboard: Dashboard) -> None:
    new_key(dashboard.data, "quiet")
    owner = dashboard.visitor("owner")
    text = owner.get("/projects/quiet/setup").text
    assert text.count("not set up") == 3
    assert 'hx-trigger="every 5s"' in text
    days = [NOON - timedelta(days=number) for number in (20, 18)]
    key = new_key(dashboard.data, "quiet", "ingest")
    hits = [{"path": "/", "userAgent": FIREFOX, "timestamp": day.isoformat()} for day in days]
    dashboard.post_hits(*hits, project="quiet", key=key)
    text = owner.get("/projects/quiet/setup").text
    assert text.count("not set up") == 2
    assert "silent" in text
    assert "<summary>1</summary>" in text
    assert "“Your server” has had no view for" in unescape(text)


def test_origins_are_changed_and_a_beacon_of_them_is_accepted(dashboard: Dashboard) -> None:
    projects.create(dashboard.engine, "origins", (), int(time.time()))
    owner = dashboard.visitor("owner")
    path = "/projects/origins/setup"
    assert "No site is allowed yet" in owner.get(path).text
    changed = post(owner, f"{path}/origins", origins="https://Example.com/\r\n\r\n http://localhost:3000 ")
    assert changed.status_code == 303
    text = owner.get(changed.headers["location"]).text
    assert "The allowed sites were changed" in text
    assert "https://example.com\nhttp://localhost:3000" in text
    beacon = dashboard.client.post(
        "/v1/analytics/origins/hits",
        content='{"path": "/"}',
        headers={"Origin": "https://example.com", "Content-Type": "text/plain"},
    )
    assert beacon.status_code == 202
    assert post(owner, f"{path}/origins", origins="").status_code == 303
    assert projects.find(dashboard.engine, "origins").origins == ()


def test_wrong_origins_change_nothing_and_are_shown_again(dashboard: Dashboard) -> None:
    before, owner = projects.find(dashboard.engine, PROJECT).origins, dashboard.visitor("owner")
    for origins, fault in (
        ("example.com", "An origin is like https://example.com"),
        ("https://example.com/path", "An origin is like https://example.com"),
        ("https://example.com <script>alert(1)</script>", "An origin is like https://example.com"),
        ("https://" + "a" * 300, "An origin has at most 300 characters."),
        ("https://example.com " * 101, "Use at most 100 origins, not 101."),
    ):
        response = post(owner, f"{PATH}/origins", origins=origins)
        assert response.status_code == 422
        assert fault in unescape(response.text)
        assert "<script>alert" not in response.text
    assert projects.find(dashboard.engine, PROJECT).origins == before


def test_address_of_a_page_is_checked_proposed_and_not_stored(dashboard: Dashboard) -> None:
    new_key(dashboard.data, "checked")
    projects.set_origins(dashboard.engine, "checked", ("https://example.com",))
    owner = dashboard.visitor("owner")
    for address, answer in (
        ("https://example.com/guide?a=1#top", "Yes: pages of <code>https://example.com</code> may send views."),
        ("Example.COM:443", "Yes: pages of <code>https://example.com</code> may send views."),
        ("http://example.com", "No: views of pages of <code>http://example.com</code> are refused."),
        ("https://www.example.com/", "No: views of pages of <code>https://www.example.com</code> are refused."),
        ("ftp://example.com", "“ftp://example.com” is not the address of a page"),
        ("http://[", "“http://[” is not the address of a page"),
        ("https://user@example.com", "“https://user@example.com” is not the address of a page"),
        ("<script>alert(1)</script>", "“&lt;script&gt;alert(1)&lt;/script&gt;” is not the address of a page"),
    ):
        assert answer in owner.get("/projects/checked/setup", params={"site": address}).text
    text = owner.get("/projects/checked/setup?site=www.example.com/a").text
    assert "https://example.com\nhttps://www.example.com</textarea>" in text
    assert projects.find(dashboard.engine, "checked").origins == ("https://example.com",)


def test_viewer_sees_the_recipes_and_no_form(dashboard: Dashboard) -> None:
    text = dashboard.visitor("viewer").get(PATH).text
    assert "Cloudflare Worker" in text
    assert f'method="post" action="{PATH}' not in text


def test_test_views_of_one_address_are_limited(tmp_path: Path) -> None:
    with opened(tmp_path / "data", {"READERSHIP_BEACONS_PER_MINUTE": "2"}) as limited:
        owner = limited.visitor("owner")
        assert [post(owner, f"{PATH}/test").status_code for _ in range(3)] == [303, 303, 429]
