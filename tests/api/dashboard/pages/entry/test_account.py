"""The page of the signed-in user, through the whole app."""

import time

from starlette.testclient import TestClient

from api.accounts import sessions, users
from api.accounts.users import Role, User
from tests.api.dashboard.pages.entry.people import (
    COOKIE,
    PASSWORD,
    add_user,
    has_password,
    is_signed_in,
    sign_in,
    with_address,
)
from tests.api.dashboard.site import Dashboard, post
from tests.processes.running import COMMAND

NEW = {"new_password": "battery staple", "repeated": "battery staple"}


def signed_in(dashboard: Dashboard, role: Role = "viewer") -> tuple[TestClient, User]:
    client, user = dashboard.visitor(None), add_user(dashboard, role)
    assert sign_in(client, user).status_code == 303
    return client, user


def test_owner_sees_the_users_and_the_commands(dashboard: Dashboard) -> None:
    client, _ = signed_in(dashboard, "owner")
    other = add_user(dashboard)
    text = client.get("/account").text
    assert other.name in text
    assert f"{COMMAND} --data {dashboard.data} user add NAME" in text
    assert "owner: may do everything" in text


def test_viewer_sees_the_own_role_and_no_other_user(dashboard: Dashboard) -> None:
    client, user = signed_in(dashboard)
    other = add_user(dashboard, "owner")
    text = client.get("/account").text
    assert user.name in text
    assert "viewer: may look at everything" in text
    assert other.name not in text
    assert "user add" not in text
    assert str(dashboard.data) not in text


def test_new_password_signs_out_all_other_browsers(dashboard: Dashboard) -> None:
    client, user = signed_in(dashboard)
    other = dashboard.visitor(None)
    sign_in(other, user)
    before = client.cookies[COOKIE]
    response = post(client, "/account", password=PASSWORD, **NEW)
    assert (response.status_code, response.headers["location"]) == (303, "/account?notice=password")
    assert "The password is changed." in client.get(response.headers["location"]).text
    assert client.cookies[COOKIE] != before
    assert sessions.find(dashboard.engine, before, int(time.time())) is None
    assert not is_signed_in(other)
    assert not has_password(dashboard, user, PASSWORD)
    assert has_password(dashboard, user, NEW["new_password"])


def test_wrong_input_changes_nothing(dashboard: Dashboard) -> None:
    client, user = signed_in(dashboard)
    for values, fault in (
        ({"password": "wrong horse", **NEW}, "This is not your password."),
        (NEW, "This is not your password."),
        ({"password": PASSWORD, "new_password": "short", "repeated": "short"}, "Use 10 to 200 characters."),
        ({"password": PASSWORD, **NEW, "repeated": ""}, "This is not the same password."),
    ):
        response = post(client, "/account", **values)
        assert response.status_code == 422
        assert f">{fault}</p>" in response.text
    assert has_password(dashboard, user, PASSWORD)
    assert is_signed_in(client, user)


def test_current_password_is_limited_like_the_sign_in(dashboard: Dashboard) -> None:
    client, user = with_address(dashboard, "192.0.2.30"), add_user(dashboard)
    sign_in(client, user)
    for _ in range(5):
        assert post(client, "/account", password="wrong horse", **NEW).status_code == 422
    response = post(client, "/account", password=PASSWORD, **NEW)
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) <= 30
    assert has_password(dashboard, user, PASSWORD)


def test_user_without_a_password_sets_one(dashboard: Dashboard) -> None:
    client = dashboard.visitor("owner", "Demo")
    assert "Current password" not in client.get("/account").text
    assert post(client, "/account", **NEW).status_code == 303
    assert users.authenticate(dashboard.engine, "Demo", NEW["new_password"]) is not None
    assert "Current password" in client.get("/account").text


def test_sign_out_everywhere_ends_all_sessions_of_the_user(dashboard: Dashboard) -> None:
    client, user = signed_in(dashboard)
    other, somebody = dashboard.visitor(None), signed_in(dashboard)[0]
    sign_in(other, user)
    response = post(client, "/account/sign-out-everywhere")
    assert (response.status_code, response.headers["location"]) == (303, "/sign-in")
    assert [is_signed_in(each) for each in (client, other, somebody)] == [False, False, True]


def test_last_seen_of_a_user_who_never_signed_in_is_never(dashboard: Dashboard) -> None:
    client, _ = signed_in(dashboard, "owner")
    add_user(dashboard)
    assert "<td>never</td>" in client.get("/account").text
