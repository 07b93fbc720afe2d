"""One-time links through the whole app: the first owner, a new password, the demo."""

import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from api.accounts import one_time_links, passwords, users
from api.accounts.one_time_links import TTL_S
from ingest.errors import RETRY_AFTER_S
from tests.api.dashboard.pages.entry.people import PASSWORD, add_user, is_signed_in, sign_in, with_address
from tests.api.dashboard.site import Dashboard, opened, post
from tests.processes.running import PROJECT

NEW = {"new_password": "battery staple", "repeated": "battery staple"}


def now_s() -> int:
    return int(time.time())


def assert_expired(response: httpx.Response) -> None:
    assert response.status_code == 404
    assert "This link does not work any more" in response.text
    assert "set-cookie" not in response.headers


@pytest.mark.long
def test_first_owner_is_created_with_name_and_password(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:
        token = one_time_links.create_for_first_owner(dashboard.engine, now_s())
        client = dashboard.visitor(None)
        for _ in range(2):
            assert "Create the first user." in client.get(f"/welcome/{token}").text
        response = post(client, f"/welcome/{token}", name=" Ada ", **NEW)
        assert (response.status_code, response.headers["location"]) == (303, f"/projects/{PROJECT}")
        [ada] = users.list_all(dashboard.engine)
        assert (ada.name, ada.role) == ("Ada", "owner")
        assert is_signed_in(client, ada)
        assert_expired(client.get(f"/welcome/{token}"))
        assert_expired(post(client, f"/welcome/{token}", name="Eve", **NEW))
        assert sign_in(dashboard.visitor(None), ada, NEW["new_password"]).status_code == 303


def test_address_that_used_a_link_does_not_wait_when_strangers_guess_passwords(dashboard: Dashboard) -> None:
    ada = add_user(dashboard)
    token = one_time_links.create(dashboard.engine, "password", ada.id, now_s())
    assert post(with_address(dashboard, "192.0.2.99"), f"/welcome/{token}", **NEW).status_code == 303
    for number in range(25):  # the last four wait for their turns
        sign_in(with_address(dashboard, f"198.51.100.{number}"), ada, "wrong horse")
    assert sign_in(with_address(dashboard, "203.0.113.7"), ada, NEW["new_password"]).status_code == 429
    assert sign_in(with_address(dashboard, "192.0.2.99"), ada, NEW["new_password"]).status_code == 303


def test_wrong_input_is_shown_beside_its_field_and_does_not_use_the_link(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:
        token = one_time_links.create_for_first_owner(dashboard.engine, now_s())
        client = dashboard.visitor(None)
        faulty: list[tuple[dict[str, str], str]] = [
            ({"name": "", **NEW}, "Please fill in this field."),
            ({"name": "a\u202eb", **NEW}, "Use 1 to 100 visible characters."),
            ({"name": "a" * 101, **NEW}, "Use at most 100 characters, not 101."),
            ({"name": "Ada", "new_password": "short", "repeated": "short"}, "Use 10 to 200 characters."),
            ({"name": "Ada", "new_password": "x" * 201, "repeated": "x" * 201}, "Use 10 to 200 characters."),
            ({"name": "Ada", **NEW, "repeated": "battery stable"}, "This is not the same password."),
            ({}, "Please fill in this field."),
        ]
        for values, fault in faulty:
            response = post(client, f"/welcome/{token}", **values)
            assert response.status_code == 422
            assert f">{fault}</p>" in response.text
            assert "battery staple" not in response.text
            assert users.count(dashboard.engine) == 0
        assert post(client, f"/welcome/{token}", name="Ada", **NEW).status_code == 303


@pytest.mark.long
def test_link_stays_valid_while_no_password_can_be_stored(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:

        def use(token: str | None, **values: str) -> httpx.Response:
            """Post the form while no password can be stored, and again."""
            with ExitStack() as stack:
                for _ in range(passwords.AT_ONCE_MAX + passwords.WAITING_MAX):
                    assert passwords._places.acquire(timeout=10)
                    stack.callback(passwords._places.release)
                response = post(dashboard.visitor(None), f"/welcome/{token}", **NEW, **values)
                assert (response.status_code, response.headers["retry-after"]) == (503, str(RETRY_AFTER_S))
            return post(dashboard.visitor(None), f"/welcome/{token}", **NEW, **values)

        first, second = (one_time_links.create_for_first_owner(dashboard.engine, now_s()) for _ in range(2))
        assert_expired(post(dashboard.client, f"/welcome/{first}", name="Eve", **NEW))
        assert use(second, name="Ada").status_code == 303
        user = add_user(dashboard, password=None)
        assert use(one_time_links.create(dashboard.engine, "password", user.id, now_s())).status_code == 303
        assert users.count(dashboard.engine) == 2


def test_invited_user_chooses_a_password(dashboard: Dashboard) -> None:
    user = add_user(dashboard, password=None)
    token = one_time_links.create(dashboard.engine, "password", user.id, now_s())
    client = dashboard.visitor(None)
    assert user.name in client.get(f"/welcome/{token}").text
    assert post(client, f"/welcome/{token}", new_password="short", repeated="short").status_code == 422
    assert post(client, f"/welcome/{token}", **NEW).status_code == 303
    assert is_signed_in(client, user)
    assert_expired(post(client, f"/welcome/{token}", **NEW))
    assert sign_in(dashboard.visitor(None), user, NEW["new_password"]).status_code == 303


def test_link_that_signs_in_needs_one_click(dashboard: Dashboard) -> None:
    user = add_user(dashboard, password=None)
    token = one_time_links.create(dashboard.engine, "sign_in", user.id, now_s())
    client = dashboard.visitor(None)
    assert "Open the dashboard" in client.get(f"/welcome/{token}").text
    assert client.head(f"/welcome/{token}").status_code == 200
    assert not is_signed_in(client)
    assert post(client, f"/welcome/{token}").headers["location"] == f"/projects/{PROJECT}"
    assert is_signed_in(client, user)
    assert_expired(post(dashboard.visitor(None), f"/welcome/{token}"))


def test_link_leads_to_a_page_of_this_service(dashboard: Dashboard) -> None:
    user = add_user(dashboard, password=None)
    own = "/projects/other?period=7d"
    for following, target in ((own, own), ("https://evil.example/", "/projects")):
        token = one_time_links.create(dashboard.engine, "sign_in", user.id, now_s())
        response = post(dashboard.visitor(None), f"/welcome/{token}?{urlencode({'next': following})}")
        assert response.headers["location"] == target


def test_link_replaces_the_session_of_another_user(dashboard: Dashboard) -> None:
    client, user = dashboard.visitor("owner", "Grace"), add_user(dashboard, password=None)
    token = one_time_links.create(dashboard.engine, "sign_in", user.id, now_s())
    post(client, f"/welcome/{token}")
    text = client.get("/account").text
    assert user.name in text
    assert "Grace" not in text


def test_expired_and_unknown_links_are_not_found(dashboard: Dashboard) -> None:
    user = add_user(dashboard, password=None)
    expired = one_time_links.create(dashboard.engine, "sign_in", user.id, now_s() - TTL_S)
    for token in (expired, "x" * 43, "%00", "%ff"):
        assert_expired(dashboard.client.get(f"/welcome/{token}"))
        assert_expired(post(dashboard.client, f"/welcome/{token}"))


def test_token_stays_out_of_referers_and_of_the_origin_null(dashboard: Dashboard) -> None:
    user = add_user(dashboard, password=None)
    token = one_time_links.create(dashboard.engine, "sign_in", user.id, now_s())
    for path in (f"/welcome/{token}", "/welcome/unknown"):
        assert dashboard.client.get(path).headers["referrer-policy"] == "strict-origin"


def test_name_of_a_user_is_escaped(dashboard: Dashboard) -> None:
    user = users.create(dashboard.engine, "<img src=x onerror=alert(1)>", "viewer", passwords.hashed(PASSWORD), now_s())
    token = one_time_links.create(dashboard.engine, "password", user.id, now_s())
    text = dashboard.client.get(f"/welcome/{token}").text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<img" not in text
