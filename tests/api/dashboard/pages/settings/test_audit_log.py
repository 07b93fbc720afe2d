"""The audit log as an owner sees it: each action with its user, also those of the command line."""

import re
import time

from starlette.testclient import TestClient

from api.accounts import keys
from api.dashboard.pages.settings.audit_log import PAGE_ENTRIES
from tests.api.cli.console import KEY, call, result
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.entry.people import PASSWORD, add_user, sign_in
from tests.api.dashboard.site import Dashboard, post
from tests.processes.running import PROJECT
from warehouse.control import audit, database

BASE = f"/projects/{PROJECT}"


def log(client: TestClient, query: str = "") -> list[list[str]]:
    """Return the rows of the page without their times."""
    response = client.get(f"/account/audit{query}")
    assert response.status_code == 200, response.text
    return [row[:-1] for row in Html(response.text).rows("Entries")]


def test_each_action_has_its_user(dashboard: Dashboard) -> None:
    client, user = dashboard.visitor(None), add_user(dashboard, "owner")
    assert sign_in(client, user).status_code == 303
    values = {"id": keys.new_id(), "name": "www", "scope": "ingest", "expires": "never"}
    token = KEY.search(post(client, f"{BASE}/keys", **values).text)
    assert token is not None
    post(client, f"{BASE}/keys", **values)  # the same form again creates nothing
    for _ in range(2):
        post(client, f"{BASE}/keys/{values['id']}/revoke")
    link = re.search(r"/share/(\w+)/revoke", post(client, f"{BASE}/share", name="press", pages="all").text)
    assert link is not None
    for _ in range(2):
        post(client, f"{BASE}/share/{link[1]}/revoke")
    post(client, f"{BASE}/setup/policy", policy="all")
    post(client, f"{BASE}/setup/origins", allowed="https://b.example")
    post(client, f"{BASE}/setup/origins", origins="https://a.example")
    shown = f"www (ingest, {token[0][: len('rdr_ingest_') + 4]}…)"
    assert log(client)[:9] == [
        [user.name, "set the allowed sites", "https://a.example", PROJECT],
        [user.name, "allowed a site", "https://b.example", PROJECT],
        [user.name, "set the source policy", "all for all days", PROJECT],
        [user.name, "revoked a share link", "press", PROJECT],
        [user.name, "created a share link", "press", PROJECT],
        [user.name, "revoked an API key", shown, PROJECT],
        [user.name, "created an API key", shown, PROJECT],
        [user.name, "signed in", "", ""],
        ["Command line", "added a user", f"{user.name} (owner)", ""],
    ]
    assert token[0] not in client.get("/account/audit").text


def test_command_line_has_no_user(dashboard: Dashboard) -> None:
    call(dashboard.data, "key", "create", PROJECT, "--name", "ci", "--scope", "read")
    result(call(dashboard.data, "key", "revoke", "ci", "--project", PROJECT))
    result(call(dashboard.data, "project", "policy", PROJECT, "beacon_only", "--from", "2026-09-01"))
    rows = log(dashboard.visitor("owner"))[2:5]
    assert [row[:2] for row in rows] == [
        ["Command line", "set the source policy"],
        ["Command line", "revoked an API key"],
        ["Command line", "created an API key"],
    ]


def test_changes_of_users_are_recorded(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    call(dashboard.data, "user", "add", "bob")
    call(dashboard.data, "user", "role", "bob", "owner")
    link = call(dashboard.data, "user", "reset", "Bob").out.strip()
    client = dashboard.visitor(None)
    post(client, link, new_password=PASSWORD, repeated=PASSWORD)
    post(client, "/account", password=PASSWORD, new_password="another word", repeated="another word")
    call(dashboard.data, "user", "remove", "bob")
    assert [row[:3] for row in log(owner)[:7]] == [
        ["Command line", "removed a user", "bob"],
        ["bob", "set the password", "bob"],
        ["bob", "signed in with a link", ""],
        ["bob", "set the password", "bob"],
        ["Command line", "reset the password", "bob"],
        ["Command line", "changed a role", "bob (owner)"],
        ["Command line", "added a user", "bob (viewer)"],
    ]


def test_wrong_password_has_the_name_of_an_existing_user_only(dashboard: Dashboard) -> None:
    owner, client, user = dashboard.visitor("owner"), dashboard.visitor(None), add_user(dashboard)
    for name in (user.name.upper(), "correct horse battery", "a\0b"):
        assert post(client, "/sign-in", name=name, password="not the password").status_code == 422
    sign_in(client, user)
    post(client, "/account", password="not the password", new_password="another word", repeated="another word")
    assert [row[:3] for row in log(owner)[:5]] == [
        [user.name, "entered a wrong password", ""],
        [user.name, "signed in", ""],
        ["Unknown name", "failed to sign in", ""],
        ["Unknown name", "failed to sign in", ""],
        [user.name, "failed to sign in", ""],
    ]
    for file in dashboard.data.glob("control.sqlite*"):
        assert not any(word in file.read_bytes() for word in (b"battery", b"not the password", b"testclient"))


def test_only_owners_see_the_log_and_the_link_to_it(dashboard: Dashboard) -> None:
    viewer = dashboard.visitor("viewer")
    assert "/account/audit" in dashboard.visitor("owner").get("/account").text
    assert "/account/audit" not in viewer.get("/account").text
    assert viewer.get("/account/audit").status_code == 403


def test_pages_have_each_entry_once(dashboard: Dashboard) -> None:
    owner, other = dashboard.visitor("owner"), database.connect(str(dashboard.engine.url))
    for number in range(PAGE_ENTRIES):
        with other.transaction() as connection:
            audit.record(connection, f"user {number}", "signed in")
    other.close()
    first, second = log(owner), log(owner, "?page=2")
    assert [row[0] for row in first] == [f"user {number}" for number in reversed(range(PAGE_ENTRIES))]
    assert len(second) == audit.count(dashboard.engine) - PAGE_ENTRIES
    missing = owner.get("/account/audit?page=9")
    assert missing.status_code == 400
    assert "There is no page “9”" in missing.text


def test_entry_shows_markup_as_text(dashboard: Dashboard) -> None:
    keys.create(dashboard.engine, PROJECT, "<script>alert(1)</script>", "read", None, int(time.time()), by="<b>ada</b>")
    text = dashboard.visitor("owner").get("/account/audit").text
    assert "&lt;script&gt;alert(1)" in text
    assert "<b>ada" not in text
