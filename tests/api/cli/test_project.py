"""`project` and `key` change the control database, and a deleted project leaves nothing."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.api.cli.console import DAY_S, FIREFOX, KEY, call, complaint, result
from tests.processes.running import PROJECT, Running, new_key


def test_projects_are_created_and_listed_with_their_origins(data: Path) -> None:
    origins = ("--origin", "https://docs.example", "--origin", "HTTP://LocalHost:80/")
    created = result(call(data, "project", "create", "docs", *origins))
    assert (created["id"], created["origins"]) == ("docs", ["https://docs.example", "http://localhost"])
    assert created.keys() == {"id", "origins", "created_s"}
    assert result(call(data, "project", "create", "blog"))["origins"] == []
    assert [(each["id"], each["origins"]) for each in result(call(data, "project", "list"))] == [
        ("blog", []),
        ("docs", ["https://docs.example", "http://localhost"]),
        (PROJECT, ["*"]),
    ]
    assert result(call(data, "project", "origins", "docs", "https://new.example"))["origins"] == ["https://new.example"]


@pytest.mark.long
def test_source_policies_are_set_and_listed_by_day(data: Path) -> None:
    assert result(call(data, "project", "policy", PROJECT)) == [{"from": None, "policy": "all"}]
    result(call(data, "project", "policy", PROJECT, "log_only", "--from", "2026-09-01"))
    expected = [
        {"from": "2026-09-01", "policy": "log_only"},
        {"from": "2026-09-15", "policy": "beacon_people_log_machines"},
    ]
    since = ("beacon_people_log_machines", "--from", "2026-09-15")
    assert result(call(data, "project", "policy", PROJECT, *since)) == expected
    assert result(call(data, "project", "policy", PROJECT)) == expected
    assert call(data, "project", "policy", PROJECT, "other").status == 2
    assert call(data, "project", "policy", "none", "all").status == 1


def test_key_is_printed_alone_listed_without_its_secret_and_revoked(data: Path) -> None:
    created = call(data, "key", "create", PROJECT, "--name", "ci", "--scope", "read", "--expires-days", "30")
    assert created.status == 0
    assert KEY.fullmatch(created.out.removesuffix("\n"))
    assert created.out.endswith("\n")
    assert "rdr_" not in created.err
    listed = call(data, "key", "list", PROJECT)
    key = next(each for each in result(listed) if each["name"] == "ci")
    assert (key["project"], key["scope"]) == (PROJECT, "read")
    assert key["expires_s"] - key["created_s"] == 30 * DAY_S
    assert key["revoked_s"] is None
    assert key["start"] == created.out[: len("rdr_read_") + 4]
    assert created.out[:14] not in listed.out
    assert key["id"] in complaint(call(data, "key", "revoke", "ci"))
    before_s = int(time.time())
    assert result(call(data, "key", "revoke", "ci", "--project", PROJECT))["id"] == key["id"]
    again = next(each for each in result(call(data, "key", "list")) if each["name"] == "ci")
    assert before_s <= again["revoked_s"] <= time.time()
    assert "no valid key" in complaint(call(data, "key", "revoke", key["id"]))


def test_key_may_only_post_hits_and_has_no_expiry_by_default(data: Path) -> None:
    result(call(data, "project", "create", "docs"))
    assert call(data, "key", "create", "docs").status == 0
    (key,) = result(call(data, "key", "list", "docs"))
    assert (key["scope"], key["expires_s"]) == ("ingest", None)


@pytest.mark.long
def test_deleted_project_leaves_no_hit_key_or_record_of_a_log(start: Callable[..., Running], tmp_path: Path) -> None:
    service = start()
    other = {"Authorization": f"Bearer {new_key(service.data, 'other')}"}
    url = service.views.replace(f"/{PROJECT}/", "/other/")
    hit = {"path": "/a", "userAgent": FIREFOX, "eventId": "e1"}
    assert service.post(hit).status_code == 202
    log = tmp_path / "access.log"
    log.write_text(f'192.0.2.1 - - [01/Mar/1999:12:00:00 +0000] "GET /b HTTP/1.1" 200 5 "-" "{FIREFOX}"\n')
    assert result(call(service.data, "import", PROJECT, str(log)))["page_views"] == 1
    assert service.post({**hit, "eventId": "e2"}).status_code == 202
    httpx.post(url.replace("/views", "/hits"), json=hit, headers=other)

    assert result(call(service.data, "compact"))["rollups"] == 1
    refused = call(service.data, "project", "delete", PROJECT, stdin="n\n")
    assert (refused.status, refused.out) == (1, "")
    assert service.get()["totals"]["total"] == 3
    assert result(call(service.data, "project", "delete", PROJECT, "--yes"))["id"] == PROJECT
    assert httpx.get(service.views, headers=service.auth).status_code == 401
    assert [each["id"] for each in result(call(service.data, "project", "list"))] == ["other"]

    service.key = new_key(service.data)
    assert (service.get()["totals"]["total"], service.get()["views"]) == (0, [])
    assert service.post(hit).json() == {"accepted": 1, "duplicates": 0, "rejected": []}
    assert result(call(service.data, "import", PROJECT, str(log)))["page_views"] == 1
    assert service.get()["totals"] == {"human": 2, "ai": 0, "total": 2}
    assert httpx.get(url, headers=other).json()["totals"]["human"] == 1
    assert all(finding["fault"] is None for finding in result(call(service.data, "doctor")))


LINES = (
    '192.0.2.1 - - [01/Oct/2026:12:00:00 +0000] "GET /test HTTP/1.1" 200 1 "-" "{0}"\n'
    '192.0.2.1 - - [02/Oct/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "{0}"\n'
)


@pytest.mark.long
def test_chosen_hits_are_deleted_only_with_yes_and_no_import_brings_them_back(data: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(LINES.format(FIREFOX))
    result(call(data, "import", PROJECT, str(log)))
    command = ("project", "delete-hits", PROJECT, "--from", "2026-10-01", "--to", "2026-10-02")
    expected = [{"day": "2026-10-01", "traffic": "human", "hits": 1, "errors": 0}]
    preview = call(data, *command)
    assert (result(preview), preview.err) == (
        expected,
        "Nothing was deleted. With --yes, this command deletes 1 hit and 0 errors.\n",
    )
    assert result(call(data, *command)) == expected
    deleted = call(data, *command, "--yes")
    assert (result(deleted), deleted.err) == (expected, "1 hit and 0 errors deleted\n")
    assert result(call(data, *command, "--yes")) == []
    assert result(call(data, "import", PROJECT, str(log)))["known"] == 2
    rows = result(call(data, "sql", "SELECT path FROM hits UNION ALL SELECT path FROM daily_views", "--format", "json"))
    assert rows == [{"path": "/a"}, {"path": "/a"}]


def test_choice_of_hits_that_cannot_be_meant_is_refused(data: Path) -> None:
    begin = ("--from", "2026-10-02")
    for arguments, message in (
        ((), "name the days with --from, --to, or both"),
        ((*begin, "--to", "2026-10-02"), "--to 2026-10-02 is not after --from 2026-10-02"),
        ((*begin, "--path", ""), "--path must not be empty"),
        ((*begin, "--path", "https://a.example/b"), "--path https://a.example/b is an absolute URL"),
    ):
        done = call(data, "project", "delete-hits", PROJECT, *arguments, "--yes")
        assert done.status == 2
        assert message in " ".join(done.err.split())
