"""The page of API keys creates a key once, shows its token once, and revokes it."""

import re
import time
from datetime import UTC, datetime, timedelta
from html import unescape

import httpx
from starlette.testclient import TestClient

from api.accounts import keys
from tests.api.cli.console import KEY
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import Dashboard, post
from tests.processes.running import PROJECT, new_key
from tests.processes.waiting import until
from tests.stores import sql
from warehouse.control import projects

PATH = f"/projects/{PROJECT}/keys"
XSS = '"><script>alert(1)</script>'


def create(client: TestClient, **values: str) -> httpx.Response:
    """Open the page and post its form with these values."""
    id = re.search(r'name="id" value="(\w+)"', client.get(PATH).text)
    assert id is not None
    return post(client, PATH, **{"id": id[1], "name": "www", "scope": "ingest", "expires": "never", **values})


def token_of(response: httpx.Response) -> str:
    match = KEY.search(response.text)
    assert match is not None, response.text
    return match[0]


def status(dashboard: Dashboard, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return dashboard.client.get(f"/v1/analytics/{PROJECT}/views", headers=headers).status_code


def test_key_works_until_it_is_revoked(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    response = create(owner, name="reader", scope="read")
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    token = token_of(response)
    assert status(dashboard, token) == 200
    id = keys.find_valid(dashboard.engine, token, PROJECT, time.time()).id
    revoked = post(owner, f"{PATH}/{id}/revoke")
    assert revoked.status_code == 303
    until(lambda: status(dashboard, token) == 401)
    assert "The key was revoked" in owner.get(revoked.headers["location"]).text


def test_token_is_shown_once_and_its_start_is_listed(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    token = token_of(create(owner, name="shown once"))
    text = owner.get(PATH).text
    assert token not in text
    assert f"{token[:15]}…" in text


def test_form_that_is_posted_again_creates_no_second_key(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    values = {"id": keys.new_id(), "name": "posted twice", "scope": "read", "expires": "never"}
    token_of(post(owner, PATH, **values))
    again = post(owner, PATH, **values)
    assert again.status_code == 409
    assert "No second key was created" in again.text
    assert KEY.search(again.text) is None
    assert [key.name for key in keys.list_all(dashboard.engine)].count("posted twice") == 1


def test_id_of_a_key_of_another_project_shows_nothing_of_it(dashboard: Dashboard) -> None:
    new_key(dashboard.data, "secret-project")
    (other,) = keys.list_all(dashboard.engine, "secret-project")
    owner = dashboard.visitor("owner")
    assert create(owner, id=other.id).status_code == 409
    assert post(owner, f"{PATH}/{other.id}/revoke").status_code == 404
    assert keys.list_all(dashboard.engine, "secret-project") == [other]


def test_key_expires_after_the_chosen_time(dashboard: Dashboard) -> None:
    for expires, days in (("never", None), ("30", 30), ("90", 90), ("365", 365)):
        token = token_of(create(dashboard.visitor("owner"), expires=expires))
        key = keys.find_valid(dashboard.engine, token, PROJECT, time.time())
        if days is None:
            assert key.expires_s is None
        else:
            assert key.expires_s is not None
            assert abs(key.expires_s - key.created_s - days * 86_400) <= 1


def test_days_of_a_key_are_in_the_viewers_zone(dashboard: Dashboard) -> None:
    at_s = int(datetime(2026, 9, 30, 22, tzinfo=UTC).timestamp())
    key, _ = keys.create(dashboard.engine, PROJECT, "in a zone", "read", None, at_s)
    keys.revoke(dashboard.engine, key.id, at_s)
    for zone, day in (("UTC", "Sep 30, 2026"), ("Asia/Tokyo", "Oct 1, 2026")):
        viewer = dashboard.visitor("viewer")
        viewer.cookies.set("readership_zone", zone)
        rows = Html(viewer.get(PATH).text).rows("Revoked and expired keys")
        assert [(row[3], row[6]) for row in rows if row[0] == key.name] == [(day, f"revoked {day}")]


def test_key_lives_until_the_end_of_the_chosen_day_in_the_viewers_zone(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    owner.cookies.set("readership_zone", "Asia/Tokyo")
    day = (datetime.now(UTC) + timedelta(days=400)).date()
    token = token_of(create(owner, expires="date", day=day.isoformat()))
    key = keys.find_valid(dashboard.engine, token, PROJECT, time.time())
    assert key.expires_s is not None
    assert datetime.fromtimestamp(key.expires_s, UTC).isoformat() == f"{day}T15:00:00+00:00"  # Tokyo is 9 hours ahead


def test_wrong_input_is_shown_again_with_its_fault(dashboard: Dashboard) -> None:
    before, owner = len(keys.list_all(dashboard.engine)), dashboard.visitor("owner")
    faulty: list[tuple[dict[str, str], str]] = [
        ({"name": " "}, "Please fill in this field."),
        ({"name": "x" * 101}, "Use at most 100 characters"),
        ({"name": "a\x1bb"}, "Use letters, digits, spaces and punctuation."),
        ({"scope": "admin"}, "Choose one of: read, ingest, write."),
        ({"expires": "²"}, "Choose one of"),
        ({"expires": "date"}, "Choose a day, such as 2027-03-31."),
        ({"expires": "date", "day": "tomorrow"}, "Choose a day, such as 2027-03-31."),
        ({"expires": "date", "day": "2020-01-01"}, "Choose a day from today on"),
        ({"expires": "date", "day": "9999-12-31"}, "Choose a day from today on"),
        ({"id": ""}, "The form is incomplete"),
        ({"id": "x" * 12}, "The form is incomplete"),
    ]
    for values, fault in faulty:
        response = create(owner, **values)
        assert response.status_code == 422
        assert fault in unescape(response.text)
        if "name" in values and values["name"].isprintable():
            assert f'value="{values["name"]}"' in response.text
    assert len(keys.list_all(dashboard.engine)) == before


def test_viewer_sees_the_keys_and_no_form(dashboard: Dashboard) -> None:
    text = dashboard.visitor("viewer").get(PATH).text
    assert "rdr_admin_" in text
    assert "Create a key" not in text
    assert "/revoke" not in text


def test_command_of_the_page_has_the_address_of_the_service(dashboard: Dashboard) -> None:
    viewer = dashboard.visitor("viewer")
    assert f"curl http://testserver/v1/analytics/{PROJECT}/views" in viewer.get(PATH).text
    assert "$(id)" not in viewer.get(PATH, headers={"Host": "x$(id)"}).text


def test_name_of_a_key_is_shown_as_text(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    for response in (create(owner, name=XSS), owner.get(PATH), create(owner, name=XSS, scope="?")):
        assert "<script>alert" not in response.text
        assert "&lt;script&gt;alert(1)" in response.text


def test_project_without_keys_and_key_of_an_older_release_are_shown(dashboard: Dashboard) -> None:
    projects.create(dashboard.engine, "no-keys", (), int(time.time()))
    owner = dashboard.visitor("owner")
    assert "The project has no valid key." in owner.get("/projects/no-keys/keys").text
    key, token = keys.create(dashboard.engine, "no-keys", "old", "read", None, int(time.time()))
    sql.run(dashboard.engine, "UPDATE keys SET start = '' WHERE id = :id", id=key.id)
    text = owner.get("/projects/no-keys/keys").text
    assert key.id in text
    assert token[:14] not in text
