"""Pages of one moment, read from a running service while hits arrive, loads and compactions run, and a process dies."""

import json
import operator
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.processes.running import PROJECT, Running
from tests.processes.waiting import each_alone, processes_of, started_processes, until
from tests.rounds import seeded

HITS_PER_S, POST_HITS = 1_000, 100
LIMIT, ERRORS_MAX = 40, 250
"""Rows of a page, and of one that has all errors: those of two agents and 30 paths, and one without a path."""
MOMENTS_MIN, VERSIONS_MIN, COMPACTIONS_MIN = 3, 3, 1
"""Moments that are read under load, versions of `hits` among them, and compactions that rewrite files meanwhile."""
EXPIRES_S = 600
"""Time for which a moment can be read, in seconds."""
PAGES_MAX = 20
"""Maximum number of pages of a moment: there are fewer than 400 paths, and fewer errors."""
NOT_FOUND = 404
CURL, FIREFOX = "curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
USER_AGENTS = ["GPTBot/1.3", "ClaudeBot/1.0", CURL, FIREFOX]
DAYS = [f"2026-{month:02}-{day:02}" for month in (8, 9) for day in (1, 2, 30)]
LINE = '203.0.113.{} - - [01/Sep/2026:{}:00 +0000] "GET {} HTTP/1.1" 200 9 "-" "{}"\n'
TEST_S = 600
"""Timeout of the test under load, in seconds. On a busy machine it may exceed the 300 s of other tests."""


@dataclass
class Poster:
    """A client that posts HITS_PER_S hits a second, one request at a time, until `stopping` is set."""

    running: Running
    stopping: threading.Event = field(default_factory=threading.Event)
    acknowledged: int = 0
    """Number of human and AI hits that were accepted."""
    unsure: int = 0
    """Number of those that were sent to a process that was killed before it responded."""

    def post(self) -> None:
        chance, begun_s, number = seeded(20260901), time.monotonic(), 0
        with httpx.Client(headers=self.running.auth, timeout=60) as client:
            while not self.stopping.wait(max(0, begun_s + number * POST_HITS / HITS_PER_S - time.monotonic())):
                hits = [_hit(chance) for _ in range(POST_HITS)]
                counted = sum(hit["userAgent"] != CURL and not _is_error(hit) for hit in hits)
                try:
                    answer = client.post(self.running.hits, json=hits)
                except httpx.TransportError:
                    self.unsure += counted
                else:
                    assert (answer.status_code, answer.json()["accepted"]) == (202, POST_HITS)
                    self.acknowledged += counted
                number += 1


def _hit(chance: random.Random) -> dict[str, str | int]:
    hit: dict[str, str | int] = {
        "path": f"/{chance.randrange(20) ** 2 + chance.randrange(20)}",
        "userAgent": chance.choice(USER_AGENTS),
    }
    if chance.random() < 0.1:
        hit |= {"path": f"/gone/{chance.randrange(30)}", "status": NOT_FOUND}
    return hit | ({"timestamp": f"{chance.choice(DAYS)}T12:00:00Z"} if chance.random() < 0.5 else {})


def _is_error(hit: dict[str, str | int]) -> bool:
    return "status" in hit and hit["userAgent"] != FIREFOX


@dataclass
class Compactions:
    """Compactions by the command line, one after the other until `stopping` is set."""

    running: Running
    stopping: threading.Event
    partitions: int = 0
    """Number of partitions that they rewrote."""

    def run(self) -> None:
        while not self.stopping.is_set():
            done = self.running.run("compact", stdin=subprocess.DEVNULL)  # with an option: in its own process
            assert done.returncode == 0, done.stderr
            self.partitions += json.loads(done.stdout)["partitions"]


@contextmanager
def load(running: Running) -> Iterator[tuple[Poster, Compactions, list[Future[None]]]]:
    """Post hits and compact the lake until the context ends. The tasks that do it run until then."""
    poster = Poster(running)
    compactions = Compactions(running, poster.stopping)
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(poster.post), pool.submit(compactions.run)]
        try:
            yield poster, compactions, tasks
        finally:
            poster.stopping.set()  # without it the thread pool would wait for ever
        for task in tasks:
            task.result()


def get(running: Running, operation: str, **parameters: str | int) -> httpx.Response:
    """Return a report, requested on a connection of its own; again if the process that got the request was killed."""
    url = f"{running.url}/v1/analytics/{PROJECT}/{operation}"

    def response() -> httpx.Response | None:
        with suppress(httpx.TransportError):
            return httpx.get(url, params=parameters, headers=running.auth, timeout=60)
        return None

    got = until(lambda: (got := response()) is not None and (got,))
    return got[0]


def read_moment(running: Running, as_of: str, totals: dict[str, int], between: Callable[[int], None]) -> None:
    """Read every page of a moment, and the other reports, and compare them with its totals.

    `between` is called before each page, with its number.
    """
    views: list[dict[str, Any]] = []
    for number in range(PAGES_MAX):
        between(number)
        answer = get(running, "views", asOf=as_of, limit=LIMIT, offset=len(views))
        assert answer.status_code == 200, answer.text
        assert answer.headers["X-As-Of"] == as_of
        page = answer.json()
        assert page["totals"] == totals
        views += page["views"]
        if not page["hasMore"]:
            break
        assert len(page["views"]) == LIMIT
    else:
        pytest.fail(f"more than {PAGES_MAX} pages")
    assert len({view["path"] for view in views}) == len(views)
    assert [view["path"] for view in views] == [
        view["path"] for view in sorted(views, key=lambda view: (-view["total"], view["path"].encode()))
    ]
    assert _sums(views) == totals
    assert _sums(get(running, "breakdown", by="agent", asOf=as_of).json()["rows"]) == totals
    series = get(running, "series", interval="day", timezone="America/New_York", asOf=as_of).json()["series"]
    assert _sums(series) == totals
    assert _error_pages(running, as_of) == get(running, "errors", asOf=as_of, limit=ERRORS_MAX).json()["errors"]


def _error_pages(running: Running, as_of: str) -> list[dict[str, Any]]:
    """Return the errors of a moment, read page by page."""
    rows: list[dict[str, Any]] = []
    for _ in range(PAGES_MAX):
        answer = get(running, "errors", asOf=as_of, limit=LIMIT, offset=len(rows))
        assert (answer.status_code, answer.headers.get("X-As-Of")) == (200, as_of), answer.text
        rows += answer.json()["errors"]
        if not answer.json()["hasMore"]:
            return rows
    pytest.fail(f"more than {PAGES_MAX} pages")


def _sums(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {name: sum(row[name] or 0 for row in rows) for name in ("human", "ai", "total")}  # null: not measured


@pytest.mark.long
@pytest.mark.timeout(TEST_S)
def test_pages_of_a_moment_add_up_to_its_totals_under_load(start: Callable[..., Running]) -> None:
    running = start(processes=2, READERSHIP_LOAD_EVERY_S="1", READERSHIP_JOBS_AT_ONCE="0")
    servers = started_processes(running)
    versions: set[str] = set()
    moments: list[tuple[str, dict[str, int]]] = []

    def read_new_moment(between: Callable[[int], None] = lambda page: None) -> None:
        acknowledged = poster.acknowledged
        first = get(running, "views", limit=LIMIT)
        moments.append((first.headers["X-As-Of"], first.json()["totals"]))
        versions.add(moments[-1][0].split("_")[1])
        assert moments[-1][1]["total"] >= acknowledged
        read_moment(running, *moments[-1], between)

    def kill_a_server(page: int) -> None:
        if page == 1:
            os.kill(servers[0], signal.SIGKILL)

    with load(running) as (poster, compactions, tasks):
        until(lambda: poster.acknowledged > HITS_PER_S)
        read_new_moment(kill_a_server)
        until(lambda: len({*processes_of(running)} - {*servers}) == 1)

        def has_read_enough() -> bool:
            assert not any(task.done() for task in tasks)
            read_new_moment()
            done = (len(moments), len(versions), compactions.partitions)
            return all(map(operator.ge, done, (MOMENTS_MIN, VERSIONS_MIN, COMPACTIONS_MIN)))

        until(has_read_enough, TEST_S / 2)
    for _ in each_alone(running):
        for moment in moments[:MOMENTS_MIN]:
            read_moment(running, *moment, lambda page: None)
    total = running.get()["totals"]["total"]
    assert poster.acknowledged <= total <= poster.acknowledged + poster.unsure


def test_pages_of_a_moment_add_up_to_its_totals_while_hits_arrive(start: Callable[..., Running]) -> None:
    running, chance = start(READERSHIP_LOAD_EVERY_S="1", READERSHIP_JOBS_AT_ONCE="0"), seeded(20260902)

    def post(page: int) -> None:
        assert running.post([_hit(chance) for _ in range(POST_HITS)]).status_code == 202

    for page in range(8):
        post(page)
    first = get(running, "views", limit=LIMIT)
    read_moment(running, first.headers["X-As-Of"], first.json()["totals"], post)


@pytest.mark.long
def test_visitors_visits_and_evidence_of_a_moment_stay_while_their_day_is_imported_and_loaded(
    start: Callable[..., Running],
) -> None:
    running = start(READERSHIP_LOAD_EVERY_S="3600", READERSHIP_JOBS_AT_ONCE="0")

    def read_log(*lines: tuple[int, str, str]) -> None:
        text = "".join(LINE.format(address, time, path, FIREFOX) for address, time, path in lines)
        assert running.run("import", PROJECT, "-", input=text, env={**os.environ, **running.environ}).returncode == 0

    def people(**moment: str) -> list[Any]:
        of_day = {"dateFrom": "2026-09-01", "dateTo": "2026-09-02", **moment}
        asked = {"metrics": "visitors,visits,viewsPerVisit", **of_day}
        answers = [get(running, "breakdown", by=by, **asked) for by in ("evidence", "exitPage")]
        answers += [get(running, "series", interval="hour", **asked), get(running, "visitors", **of_day)]
        return [answer.json() for answer in answers]

    read_log((1, "00:00", "/"), (1, "00:10", "/a"), (2, "00:20", "/"))
    as_of, before = get(running, "views").headers["X-As-Of"], people()
    counts = [(row["value"], row["human"], row["visitors"]["human"], row["visits"]) for row in before[0]["rows"]]
    assert counts == [("not_measured", 3, 2, 2)]
    later = ((1, "00:05", "/style.css"), (1, "00:30", "/b"), (1, "02:00", "/"), (3, "00:00", "/"))
    read_log(*later)
    changed = people()
    counts = [(row["value"], row["human"], row["visitors"]["human"], row["visits"]) for row in changed[0]["rows"]]
    assert counts == [("assets", 4, 1, 2), ("none", 2, 2, 2)]
    for command in ("flush", "compact"):
        assert people(asOf=as_of) == before, command
        assert people() == changed, command
        assert running.run(command).returncode == 0
        read_log(*later)
    assert (people(asOf=as_of), people()) == (before, changed)


def test_moment_that_is_too_old_or_malformed_is_refused(service: Running) -> None:
    before = datetime.now(UTC)
    service.post({"path": "/as-of", "userAgent": FIREFOX})
    as_of = get(service, "views").headers["X-As-Of"]
    taken = datetime.fromisoformat(as_of.partition("_")[0])
    assert before <= taken <= datetime.now(UTC)

    def at(later: timedelta) -> str:
        return as_of.replace(as_of.partition("_")[0], f"{taken + later:%Y-%m-%dT%H:%M:%S.%fZ}")

    expired = [at(-timedelta(seconds=EXPIRES_S + 1))]
    time, version, last_id, *generation = as_of.split("_")  # a generation if another test has erased rows
    invalid = [
        "",
        "now",
        time,
        f"{as_of}x",
        at(timedelta(hours=1)),
        "_".join((time, f"{int(version) + 1_000}", last_id, *generation)),
        "_".join((time, version, f"{int(last_id) + 1_000_000}", *generation)),
    ]
    # Other tests post hits of years ago: a series of all time could have too many days.
    for operation in ("views", "series?interval=day&dateFrom=2026-01-01", "breakdown?by=agent", "errors"):
        name, _, query = operation.partition("?")
        parameters = dict(each.split("=") for each in query.split("&") if each)
        assert get(service, name, asOf=as_of, **parameters).status_code == 200
        for text in expired:
            answer = get(service, name, asOf=text, **parameters)
            assert (answer.status_code, answer.json()["type"]) == (410, "/docs#moment-expired")
            assert "asOf" in answer.text
        for text in invalid:
            answer = get(service, name, asOf=text, **parameters)
            assert (answer.status_code, answer.json()["type"]) == (400, "/docs#invalid-parameter"), text
            assert re.search("asOf", answer.text)
