"""The sign-in and the sign-out, through the whole app."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from api.accounts import passwords, sessions, users
from api.accounts.attempts import FREE_FAILURES
from tests.api.dashboard.pages.entry.people import COOKIE, PASSWORD, add_user, is_signed_in, sign_in, with_address
from tests.api.dashboard.site import Dashboard, opened, post


def test_root_leads_to_the_sign_in_and_with_a_session_to_the_projects(dashboard: Dashboard) -> None:
    for role, location in ((None, "/sign-in"), ("viewer", "/projects")):
        response = dashboard.visitor(role).get("/")
        assert (response.status_code, response.headers["location"]) == (303, location)


def test_links_and_redirects_have_the_prefix_of_a_proxy(tmp_path: Path) -> None:
    environ = {"READERSHIP_BASE_URL": "http://testserver/stats"}
    with opened(tmp_path / "data", environ) as dashboard:
        client, user = dashboard.visitor(None), add_user(dashboard)
        assert client.get("/").headers["location"] == "/stats/sign-in"
        assert client.get("/account").headers["location"] == "/stats/sign-in?next=%2Faccount"
        assert 'action="/stats/sign-in?next=%2Faccount"' in client.get("/sign-in?next=/account").text
        assert sign_in(client, user, query="?next=/account").headers["location"] == "/stats/account"


def test_attempts_that_are_answered_with_503_do_not_count(dashboard: Dashboard) -> None:
    """Check more attempts than are free of a wait, and afterwards the right password."""
    client, user = dashboard.visitor(None), add_user(dashboard)
    with ExitStack() as stack:
        for _ in range(passwords.AT_ONCE_MAX + passwords.WAITING_MAX):
            assert passwords._places.acquire(timeout=10)
            stack.callback(passwords._places.release)
        refused = [sign_in(client, user) for _ in range(FREE_FAILURES + 1)]
    assert {response.status_code for response in refused} == {503}
    assert f"try again in {refused[0].headers['retry-after']} seconds" in refused[0].text
    assert sign_in(client, user).status_code == 303


def test_request_waits_for_a_lock_of_the_control_database_for_less_than_five_seconds(dashboard: Dashboard) -> None:
    control = dashboard.client.app_state["running"].control
    with control.connect() as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (4_000,)


def test_name_and_password_start_a_session(dashboard: Dashboard) -> None:
    client, user = dashboard.visitor(None), add_user(dashboard)
    assert not is_signed_in(client)
    response = sign_in(client, user)
    assert (response.status_code, response.headers["location"]) == (303, "/projects")
    assert is_signed_in(client, user)
    parts = response.headers["set-cookie"].split("; ")
    assert parts[0].startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(parts)
    assert "Secure" not in parts


def test_session_cookie_on_https_has_the_prefix_host(tmp_path: Path) -> None:
    with opened(tmp_path / "data", {"READERSHIP_BASE_URL": "https://stats.example"}) as dashboard:
        client, user = dashboard.visitor(None), add_user(dashboard)
        parts = sign_in(client, user).headers["set-cookie"].split("; ")
        assert parts[0].startswith(f"__Host-{COOKIE}=")
        assert {"HttpOnly", "SameSite=lax", "Path=/", "Secure"} <= set(parts)
        client.base_url = "https://testserver"
        assert is_signed_in(client, user)


def test_sign_in_returns_to_the_page_that_was_asked_for(dashboard: Dashboard) -> None:
    client, user = dashboard.visitor(None), add_user(dashboard)
    asked = client.get("/account?notice=password").headers["location"]
    assert asked == "/sign-in?next=%2Faccount%3Fnotice%3Dpassword"
    form = client.get(asked).text
    assert 'action="/sign-in?next=%2Faccount%3Fnotice%3Dpassword"' in form
    assert sign_in(client, user, query=asked.removeprefix("/sign-in")).headers["location"] == "/account?notice=password"
    assert client.get(asked).headers["location"] == "/account?notice=password"


def test_sign_in_does_not_lead_to_another_site(dashboard: Dashboard) -> None:
    user = add_user(dashboard)
    for target in ("//evil.example", "https://evil.example", "/\t/evil.example", "javascript:alert(1)"):
        client = dashboard.visitor(None)
        query = str(client.build_request("GET", "/sign-in", params={"next": target}).url.query, "ascii")
        assert sign_in(client, user, query=f"?{query}").headers["location"] == "/projects"
        assert client.get(f"/sign-in?{query}").headers["location"] == "/projects"


def test_wrong_name_and_wrong_password_are_the_same_fault(dashboard: Dashboard) -> None:
    client, user = dashboard.visitor(None), add_user(dashboard)
    for name, password in ((user.name, "wrong horse"), ("nobody at all", PASSWORD), ("a\x00b", PASSWORD)):
        response = post(client, "/sign-in", name=name, password=password)
        assert response.status_code == 422
        assert "The name or the password is wrong." in response.text
        assert password not in response.text
        assert "set-cookie" not in response.headers
    assert not is_signed_in(client)


def test_entered_name_stays_beside_its_faults_and_is_escaped(dashboard: Dashboard) -> None:
    add_user(dashboard)  # without a user the page has no form
    client = dashboard.visitor(None)
    response = post(client, "/sign-in", name='"><script>alert(1)</script>', password="wrong horse")
    assert 'value="&#34;&gt;&lt;script&gt;' in response.text
    assert "<script>alert" not in response.text
    response = post(client, "/sign-in", name="x" * 101)
    assert response.status_code == 422
    assert "Use at most 100 characters, not 101." in response.text
    assert "Please fill in this field." in response.text


def test_sixth_attempt_is_refused_even_with_the_right_password(dashboard: Dashboard) -> None:
    client, user = with_address(dashboard, "192.0.2.10"), add_user(dashboard)
    for _ in range(5):
        assert sign_in(client, user, "wrong horse").status_code == 422
    response = sign_in(client, user)
    assert response.status_code == 429
    assert 1 <= int(response.headers["retry-after"]) <= 30
    assert "Too many failed attempts. Try again in " in response.text
    assert not is_signed_in(client)
    assert sign_in(with_address(dashboard, "192.0.2.11"), user).status_code == 303


@pytest.mark.long
def test_address_that_tries_many_names_is_refused(dashboard: Dashboard) -> None:
    client, user = with_address(dashboard, "192.0.2.20"), add_user(dashboard)
    for number in range(20):
        assert post(client, "/sign-in", name=f"guess {number}", password="wrong horse").status_code == 422
    response = sign_in(client, user)
    assert response.status_code == 429
    assert "Try again in 15 minutes." in response.text


def test_planted_session_is_replaced_by_a_new_one(dashboard: Dashboard) -> None:
    """Check that an attacker who plants a token in the victim's browser does not share the victim's session."""
    attacker, victim = add_user(dashboard), add_user(dashboard)
    planted = sessions.start(dashboard.engine, attacker.id, int(time.time()))
    for token in (planted, "x" * 43):
        client = dashboard.visitor(None)
        client.cookies.set(COOKIE, token, domain="testserver.local", path="/")
        response = sign_in(client, victim)
        new = response.headers["set-cookie"].partition("=")[2].partition(";")[0]
        assert new not in (planted, "x" * 43)
        user = sessions.find(dashboard.engine, new, int(time.time()))
        assert user is not None
        assert user.name == victim.name
    assert sessions.find(dashboard.engine, planted, int(time.time())) is None


def test_sign_out_ends_the_session_of_this_browser(dashboard: Dashboard) -> None:
    user = add_user(dashboard)
    first, second = dashboard.visitor(None), dashboard.visitor(None)
    for client in (first, second):
        sign_in(client, user)
    token = first.cookies[COOKIE]
    response = post(first, "/sign-out")
    assert (response.status_code, response.headers["location"]) == (303, "/sign-in")
    assert COOKIE not in first.cookies
    assert sessions.find(dashboard.engine, token, int(time.time())) is None
    assert is_signed_in(second, user)
    assert post(first, "/sign-out").headers["location"] == "/sign-in"


def test_form_with_the_origin_of_the_service_signs_in(dashboard: Dashboard) -> None:
    client, user = dashboard.visitor(None), add_user(dashboard)
    values, headers = {"name": user.name, "password": PASSWORD}, {"Origin": "http://testserver"}
    assert client.post("/sign-in", data=values, headers=headers).status_code == 303


def test_session_of_a_removed_user_ends_at_once(dashboard: Dashboard) -> None:
    add_user(dashboard, "owner")
    client, user = dashboard.visitor(None), add_user(dashboard)
    sign_in(client, user)
    assert is_signed_in(client, user)
    users.remove(dashboard.engine, user.id)
    assert not is_signed_in(client)
    assert sign_in(client, user).status_code == 422


def test_sign_in_without_users_explains_the_first_link(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:
        text = dashboard.client.get("/sign-in").text
        assert "readership user add NAME --role owner" in text
        assert "<form" not in text
        add_user(dashboard, "owner")
        assert "<form" in dashboard.client.get("/sign-in").text
