"""Two nodes with one PostgreSQL database and one lake count each hit once, and each answers for both."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import warehouse
from tests.processes.running import Running, readership
from tests.processes.waiting import until, within_window
from tests.stores.outage import Way, way_to

pytestmark = pytest.mark.long

BEACONS = 10
"""Limit on beacons per address and minute. A share of it is one beacon."""
HIT = {"path": "/a", "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"}


@pytest.fixture(scope="module")
def nodes(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Running, Way]]:
    """Yield two services, and the way of the second one to the database."""
    folder = tmp_path_factory.mktemp("nodes")
    with way_to(postgresql) as (way, url, direct_url):
        started = []
        try:
            for name, database in (("first", direct_url), ("second", url)):
                environ = {
                    "READERSHIP_DATABASE_URL": database,
                    "READERSHIP_JOBS_AT_ONCE": "0",
                    "READERSHIP_BEACONS_PER_MINUTE": str(BEACONS),
                }
                node = Running(folder / name, environ=environ, key=started[0].key if started else "")
                if started:
                    node.data.mkdir()
                    (node.data / "lake").symlink_to(started[0].data / "lake")
                started.append(node.start())
            first, second = started
            yield first, second, way
        finally:
            way.restore()
            assert [node.stop() for node in started] == [0] * len(started)


def post(node: Running, path: str, event_id: str | None = None, **headers: str) -> httpx.Response:
    hit = {**HIT, "path": path, **({"eventId": event_id} if event_id else {})}
    return httpx.post(node.hits, json=hit, headers={**node.auth, **headers}, timeout=60)


def run(node: Running, *arguments: str) -> int:
    """Return the exit status of a command on a node."""
    return readership("--data", str(node.data), *arguments, env=node.environ).returncode


def totals(node: Running) -> dict[str, int]:
    return {each["path"]: each["total"] for each in node.get()["views"]}


def people(node: Running) -> list[Any]:
    """Return the visitors, visits and evidence of one day."""
    asked = ("visitors", "breakdown?by=evidence&metrics=visitors,visits", "breakdown?by=exitPage")
    of_day = [f"{each}{'&' if '?' in each else '?'}dateFrom=2026-09-01&dateTo=2026-09-02" for each in asked]
    return [httpx.get(f"{node.url}/v1/analytics/site/{each}", headers=node.auth, timeout=60).json() for each in of_day]


def test_visitors_visits_and_evidence_stay_if_each_node_imports_the_same_log(
    nodes: tuple[Running, Running, Way], tmp_path: Path
) -> None:
    requests = [(1, "00", "/"), (1, "05", "/style.css"), (1, "10", "/a"), (2, "00", "/"), (2, "40", "/")]
    line = '203.0.113.{} - - [01/Sep/2026:00:{}:00 +0000] "GET {} HTTP/1.1" 200 9 "-" "{}"\n'
    log, before = tmp_path / "access.log", list[Any]()
    log.write_text("".join(line.format(*each, HIT["userAgent"]) for each in requests))
    for node in nodes[:2] * 2:
        assert run(node, "import", "site", str(log)) == 0
        for reader in nodes[:2]:
            before = before or people(reader)
            assert people(reader) == before
        assert run(node, "flush") == 0
    visitors, evidence, exits = before
    assert visitors["totals"] == {"human": 2, "ai": 0, "total": 2}
    assert [(row["value"], row["human"], row["visits"]) for row in evidence["rows"]] == [
        ("assets", 2, 1),
        ("none", 2, 2),
    ]
    assert [(row["value"], row["visits"]) for row in exits["rows"]] == [("/", 2), ("/a", 1)]
    hit = {**HIT, "path": "/b", "address": "203.0.113.1", "timestamp": "2026-09-01T00:20:00Z"}
    assert nodes[1].post(hit).json()["accepted"] == 1  # the salt of the day is one
    for node in nodes[:2]:
        visitors, evidence, exits = people(node)
        assert visitors["totals"] == {"human": 2, "ai": 0, "total": 2}
        assert evidence["rows"][0]["human"] == 3


def test_hit_counts_once_over_all_nodes_and_is_in_the_next_export_of_each(nodes: tuple[Running, Running, Way]) -> None:
    first, second, _ = nodes
    before = totals(first)  # hits of the other test, if it was the first
    for node in (first, second):
        assert post(node, "/event", "e").json()["accepted"] == (1 if node is first else 0)
        assert post(node, "/key", **{"Idempotency-Key": "k"}).json()["accepted"] == 1
    expected = {**before, "/event": 1, "/key": 1}
    for number, (writer, reader) in enumerate([(first, second), (second, first)] * 2):
        assert post(writer, f"/{number}").status_code == 202
        expected[f"/{number}"] = 1
        assert totals(reader) == totals(writer) == expected
        assert run(writer, "flush") == 0
        assert totals(reader) == totals(writer) == expected
    log = first.data.parent / "access.log"
    log.write_text(f'192.0.2.1 - - [01/Nov/2026:00:00:00 +0000] "GET /log HTTP/1.1" 200 1 "-" "{HIT["userAgent"]}"\n')
    assert run(second, "import", "--dry-run", "site", str(log)) == 0
    assert totals(first) == expected
    for node in (first, second):
        assert run(node, "import", "site", str(log)) == 0
    assert totals(second) == totals(first) == {**expected, "/log": 1}
    query = "SELECT path, sum(views) FROM daily_views WHERE path = '/log' GROUP BY path"
    answer = readership("--data", str(second.data), "sql", query, "--format", "ndjson", env=second.environ)
    assert list(json.loads(answer.stdout).values()) == ["/log", 1]
    with closing(warehouse.connect(second.data, database_url=second.environ["READERSHIP_DATABASE_URL"])) as database:
        assert database.sql("SELECT count(*) FROM hits").fetchall() == [(sum(expected.values()) + 1,)]
    third = readership("--data", str(first.data.parent / "third"), "flush", env=first.environ)
    assert (third.returncode, "belongs to another lake" in third.stderr) == (1, True)
    assert [run(node, "doctor") for node in (first, second)] == [0, 0]
    assert not (first.data / "hot.sqlite").exists()


def test_node_without_its_database_answers_503_and_recovers(nodes: tuple[Running, Running, Way]) -> None:
    first, second, way = nodes
    assert post(second, "/before").status_code == 202
    way.cut()
    for answer in (post(second, "/away"), httpx.get(second.views, headers=second.auth, timeout=60)):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert post(first, "/other").status_code == 202
    way.restore()
    until(lambda: post(second, "/after").status_code == 202)
    assert totals(second) == totals(first)
    assert totals(first)["/before"] == totals(first)["/other"] == 1
    assert "/away" not in totals(first)


def test_limits_on_beacons_and_sign_ins_are_those_of_all_nodes(nodes: tuple[Running, Running, Way]) -> None:
    first, second, _ = nodes

    def beacons(address: str) -> tuple[str, Counter[int]]:
        headers = {"User-Agent": HIT["userAgent"], "X-Forwarded-For": address}
        hit = {"path": f"/from/{address}"}
        posts = (httpx.post(node.hits, json=hit, headers=headers, timeout=60) for node in (first, second) * BEACONS)
        return hit["path"], Counter(each.status_code for each in posts)

    path, statuses = within_window(beacons)
    accepted = statuses[202]
    assert BEACONS - 1 <= accepted <= BEACONS + 1
    assert statuses == {202: accepted, 429: 2 * BEACONS - accepted}
    assert run(first, "user", "add", "ada", "--role", "owner") == 0
    form = {"name": "Ada", "password": "wrong horse"}
    sign_ins = [
        httpx.post(f"{node.url}/sign-in", data=form, headers={"Sec-Fetch-Site": "same-origin"}, timeout=60).status_code
        for node in (first, second) * 3
    ]
    assert sign_ins == [422] * 5 + [429]
    assert totals(second)[path] == totals(first)[path] == accepted
