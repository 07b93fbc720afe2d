"""`user` manages the users of the dashboard, and prints links that set a password."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from api.accounts import one_time_links, sessions, users
from api.accounts.one_time_links import OneTimeLink
from api.server import service_lock
from tests.api.cli.console import Done, call, complaint, result
from tests.processes.running import Running
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.folder import CONTROL, RUN, sqlite_url

LINK = re.compile(r"(?P<url>.*)/welcome/(?P<token>[\w-]{43})\n")
PASSWORD = "correct horse"


@pytest.fixture
def engine(data: Path) -> Iterator[Pool]:
    engine = database.connect(sqlite_url(data / CONTROL))
    yield engine
    engine.close()


def link(done: Done) -> re.Match[str]:
    assert done.status == 0, done.err
    match = LINK.fullmatch(done.out)
    assert match is not None, done.out
    assert match["token"] not in done.err
    return match


def listed(data: Path) -> list[tuple[str, str, bool]]:
    return [(each["name"], each["role"], each["has_password"]) for each in result(call(data, "user", "list"))]


def test_added_user_is_listed_and_gets_a_link_that_sets_a_password(data: Path, engine: Pool) -> None:
    token = link(call(data, "user", "add", "Ada", "--role", "owner"))["token"]
    ada = users.find_by_name(engine, "Ada")
    assert one_time_links.find(engine, token, int(time.time())) == OneTimeLink("password", ada)
    link(call(data, "user", "add", "Bob"))
    assert listed(data) == [("Ada", "owner", False), ("Bob", "viewer", False)]
    lines = call(data, "user", "list", "--format", "ndjson").out.splitlines()
    assert [re.findall(r'"name":"(\w+)"', line) for line in lines] == [["Ada"], ["Bob"]]
    assert "last seen" in call(data, "user", "list", "--format", "table").out


def test_user_may_be_added_before_the_first_start(tmp_path: Path) -> None:
    assert link(call(tmp_path / "new", "user", "add", "Ada", "--role", "owner"))["url"] == ""
    assert listed(tmp_path / "new") == [("Ada", "owner", False)]


def test_first_user_must_be_an_owner(data: Path) -> None:
    refused = call(data, "user", "add", "Bob")
    assert refused.status == 2
    assert "the first user must be an owner" in refused.err
    assert listed(data) == []


def test_link_begins_with_the_base_url_or_the_url_of_the_running_service(data: Path) -> None:
    done = call(data, "user", "add", "Ada", "--role", "owner")
    assert link(done)["url"] == ""
    assert "at the URL of the service" in done.err
    service_lock.write_url(data / RUN, "http://127.0.0.1:8123")
    assert link(call(data, "user", "reset", "Ada"))["url"] == "http://127.0.0.1:8123"
    environ = {"READERSHIP_BASE_URL": "https://example.com/stats"}
    assert link(call(data, "user", "reset", "Ada", **environ))["url"] == "https://example.com/stats"


@pytest.mark.long
def test_running_service_is_known_until_it_ends(start: Callable[..., Running]) -> None:
    service = start()
    assert link(call(service.data, "user", "add", "Ada", "--role", "owner"))["url"] == service.url
    assert service.stop() == 0
    assert link(call(service.data, "user", "reset", "Ada"))["url"] == ""


def test_password_is_the_first_line_of_standard_input(data: Path, engine: Pool) -> None:
    for number, ending in enumerate(("\n", "\r\n", "", "\nanother line\n")):
        arguments = ("user", "add", f"Ada {number}", "--role", "owner", "--password-stdin")
        done = call(data, *arguments, stdin=f"{PASSWORD}{ending}")
        assert result(done)["has_password"] is True
        assert PASSWORD not in done.out + done.err
        assert users.authenticate(engine, f"Ada {number}", PASSWORD) is not None


def test_short_password_is_refused(data: Path) -> None:
    arguments = ("user", "add", "Ada", "--role", "owner", "--password-stdin")
    assert "10 to 200 characters" in complaint(call(data, *arguments, stdin="short\n"))
    assert listed(data) == []


def test_reset_ends_password_and_sessions_and_prints_a_link(data: Path, engine: Pool) -> None:
    call(data, "user", "add", "Ada", "--role", "owner", "--password-stdin", stdin=PASSWORD)
    ada, now_s = users.find_by_name(engine, "Ada"), int(time.time())
    session = sessions.start(engine, ada.id, now_s)
    assert one_time_links.find(engine, link(call(data, "user", "reset", "ada"))["token"], now_s) is not None
    assert sessions.find(engine, session, now_s) is None
    assert users.authenticate(engine, "Ada", PASSWORD) is None
    done = call(data, "user", "reset", "Ada", "--password-stdin", stdin="battery staple\n")
    assert result(done)["has_password"] is True
    assert users.authenticate(engine, "Ada", "battery staple") is not None


@pytest.mark.long
def test_owner_is_demoted_and_removed_unless_there_is_no_other(data: Path) -> None:
    call(data, "user", "add", "Ada", "--role", "owner")
    call(data, "user", "add", "Bob")
    for change in (("remove", "Ada"), ("role", "Ada", "viewer")):
        assert "the only owner" in complaint(call(data, "user", *change))
    assert result(call(data, "user", "role", "bob", "owner"))["role"] == "owner"
    assert result(call(data, "user", "role", "Ada", "viewer"))["role"] == "viewer"
    assert result(call(data, "user", "remove", "ADA"))["removed"] is True
    assert listed(data) == [("Bob", "owner", False)]


def test_impossible_and_unknown_names_are_one_line(data: Path) -> None:
    call(data, "user", "add", "Ada", "--role", "owner")
    assert "there is a user 'ada' already" in complaint(call(data, "user", "add", "ada"))
    assert "1 to 100 characters" in complaint(call(data, "user", "add", "a" * 101))
    for command in (("remove", "Bob"), ("reset", "Bob"), ("role", "Bob", "owner")):
        assert "there is no user 'Bob'" in complaint(call(data, "user", *command))


@pytest.mark.long
def test_start_without_users_logs_a_new_link_for_the_first_owner(start: Callable[..., Running]) -> None:
    service = start()
    engine = database.connect(sqlite_url(service.data / CONTROL))
    [[address, first]] = re.findall(r"30 minutes: (\S+)/welcome/([\w-]{43})", service.log.read_text())
    assert address == service.url
    service.stop()
    service.start()
    [token] = re.findall(r"/welcome/([\w-]{43})", service.log.read_text())
    assert one_time_links.find(engine, first, int(time.time())) is None
    assert one_time_links.find(engine, token, int(time.time())) == OneTimeLink("first_owner", None)
    users.create(engine, "Ada", "owner", None, 1)
    engine.close()
    service.stop()
    service.start()
    assert "/welcome/" not in service.log.read_text()
