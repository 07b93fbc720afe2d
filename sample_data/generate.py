"""Write `access.log`, a month of requests to example.com, and `expected_views.json`, its correct counts.

Each line is generated together with its meaning, and the correct counts are counts of the meanings: the log is never
read back.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import get_args

from sample_data.draws import about, below, draw, one_of
from sample_data.traffic import (
    DAYS,
    DIRECT,
    FIRST_DAY,
    HABITS,
    HERE,
    MONTHS,
    ODD,
    PAGES,
    READERS,
    REFERRERS,
    SEED,
    SKIPPED,
    TRAFFIC,
    WEEKEND_SHARE,
    ZONE_WEIGHTS,
    ZONES,
    Group,
    Habit,
    Page,
    Reader,
    Reason,
    Referrer,
    Traffic,
)


@dataclass(frozen=True, slots=True)
class Client:
    """A reader with an address, and the time zone of the server that logs the requests."""

    reader: Reader
    address: str
    zone: timezone


@dataclass(frozen=True, slots=True)
class PageView:
    path: str
    traffic: Traffic
    agent: str


@dataclass(frozen=True, slots=True)
class Error:
    """A request of an AI agent or bot for a page, answered with an error."""

    path: str
    traffic: Traffic
    agent: str
    status: int


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log without its newline, with its UTC time and its meaning."""

    at: datetime
    raw: bytes
    means: PageView | Error | Reason


def main(folder: Path) -> None:
    lines = month(Random(SEED))
    (folder / "access.log").write_bytes(b"".join(line.raw + b"\n" for line in lines))
    answer = json.dumps(expected_views(lines), indent=1) + "\n"
    (folder / "expected_views.json").write_bytes(answer.encode("ascii"))


def month(rng: Random) -> list[Line]:
    """Return all lines in the order of their times; the logs of the servers in several zones are merged."""
    lines = [
        line
        for day in range(DAYS)
        for habit in HABITS
        for _ in range(visits_on(day, habit))
        for line in visit(rng, habit, moment(rng, day))
    ]
    lines += [*edges_of_days(rng), *odd_requests(rng), *broken_lines(rng)]
    return sorted(lines, key=lambda line: line.at)


def visits_on(day: int, habit: Habit) -> int:
    visits = habit.visits_first + (habit.visits_last - habit.visits_first) * day / (DAYS - 1)
    is_weekend = (FIRST_DAY + timedelta(days=day)).weekday() >= 5
    return round(visits * WEEKEND_SHARE if is_weekend and habit.group == "people" else visits)


def visit(rng: Random, habit: Habit, at: datetime) -> Iterator[Line]:
    """Yield the page views of one visit, then its other requests. Later pages have the page before as referrer."""
    group = habit.group
    client = Client(reader_of(rng, group), address(rng), draw(rng, ZONES, ZONE_WEIGHTS))
    source = draw(rng, REFERRERS, [row.weight for row in REFERRERS]) if group == "people" else DIRECT
    for _ in range(about(rng, habit.pages_mean)):
        page = page_for(rng, group)
        yield page_view(rng, client, at, page, source)
        source = Referrer(1, f"https://example.com{page.path}") if group == "people" else DIRECT
        at += timedelta(seconds=1 + below(rng, 90))
    rows = [row for row in SKIPPED if row.group == group]
    for _ in range(about(rng, habit.skipped_mean)):
        row = draw(rng, rows, [row.weight for row in rows])
        error = Error(row.request.split(" ")[1].partition("?")[0], TRAFFIC[group], client.reader.agent, row.status)
        means = error if row.reason == "error" else row.reason
        yield Line(at, render(rng, client, at, row.request, row.status, source.url).encode(), means)
        at += timedelta(seconds=below(rng, 3))


def page_view(rng: Random, client: Client, at: datetime, page: Page, source: Referrer) -> Line:
    target = page.targets[0] if rng.random() < 0.8 else one_of(rng, page.targets)
    if source.query and not {"?", "#"} & set(target):
        target = f"{target}?{source.query}"
    request = f"GET {target} {one_of(rng, ('HTTP/1.1', 'HTTP/2.0', 'HTTP/2.0', 'HTTP/3.0'))}"
    repeated = 206 if page.path.endswith(".pdf") else 304
    status = repeated if rng.random() < 0.08 else 200
    means = PageView(page.path, TRAFFIC[client.reader.group], client.reader.agent)
    return Line(at, render(rng, client, at, request, status, source.url).encode(), means)


def edges_of_days(rng: Random) -> Iterator[Line]:
    """Yield page views in the first and last second of the month and of days within it, in each zone."""
    groups: tuple[Group, ...] = ("people", "ai")
    for day, second in ((0, 0), (13, 86399), (14, 0), (29, 86399)):
        at = FIRST_DAY + timedelta(days=day, seconds=second)
        for zone in ZONES:
            for group in groups:
                client = Client(reader_of(rng, group), address(rng), zone)
                yield page_view(rng, client, at, page_for(rng, group), DIRECT)


def odd_requests(rng: Random) -> Iterator[Line]:
    for row in ODD:
        at = moment(rng, below(rng, DAYS))
        client = Client(Reader("tools", 1, row.user_agent), address(rng), ZONES[0])
        text = render(rng, client, at, row.request, row.status, row.referrer)
        error = Error(row.request, "bot", "", row.status)
        means = PageView(row.path, "human", "") if row.path else error if row.reason == "error" else row.reason
        yield Line(at, text.encode(row.encoding), means)


def broken_lines(rng: Random) -> Iterator[Line]:
    """Yield lines that are no combined lines: remains of a full disk, a crash, a second writer or a wrong file."""
    at = FIRST_DAY + timedelta(days=9, hours=10, minutes=11, seconds=12)
    whole = page_view(rng, Client(READERS[0], "192.0.2.77", ZONES[0]), at, PAGES[0], DIRECT).raw
    time = b"10/Sep/2026:10:11:12 +0000"
    no_times = (b"31/Sep/2026:10:11:12 +0000", b"10/Sep/2026:25:61:12 +0000", b"-")
    remains = (
        b"",
        b"   ",
        *(whole[:end] for end in (17, 50, -20)),
        whole[:50] + whole,
        *(whole.replace(time, no_time) for no_time in no_times),
        b"2026/09/10 10:11:12 [error] 812#0: *5 open() failed (2: No such file or directory), client: 192.0.2.77",
        b"\x80\x81\xfe\xff\x85\xa0caf\xe9 \xf0\x28\x8c\x28 \x0b\x0c\x1c\x1d",
        bytes(24),
    )
    for number, raw in enumerate(remains):
        yield Line(at + timedelta(minutes=number), raw, "malformed" if raw.strip() else "not_a_request")


def render(rng: Random, client: Client, at: datetime, request: str, status: int, referrer: str) -> str:
    """Return a line in the combined format: https://httpd.apache.org/docs/2.4/logs.html#combined"""
    local = at.astimezone(client.zone)
    time = f"{local:%d}/{MONTHS[local.month]}/{local:%Y:%H:%M:%S %z}"
    user = "ana" if rng.random() < 0.01 else "-"
    size = one_of(rng, ("-", "0")) if status in (204, 304) else str(180 + below(rng, 60_000))
    head = f'{client.address} - {user} [{time}] "{request}" {status} {size}'
    return f'{head} "{referrer}" "{client.reader.user_agent}"'


def reader_of(rng: Random, group: Group) -> Reader:
    rows = [row for row in READERS if row.group == group]
    return draw(rng, rows, [row.weight for row in rows])


def page_for(rng: Random, group: Group) -> Page:
    return draw(rng, PAGES, [page.weights.get(group, 0) for page in PAGES])


def address(rng: Random) -> str:
    """Return a random address that is reserved for documentation: RFC 5737 and RFC 3849."""
    if rng.random() < 0.2:
        return f"2001:db8:{1 + below(rng, 0xFFFF):x}:{1 + below(rng, 0xFFFF):x}::{1 + below(rng, 0xFF):x}"
    return f"{one_of(rng, ('192.0.2', '198.51.100', '203.0.113'))}.{1 + below(rng, 254)}"


def moment(rng: Random, day: int) -> datetime:
    """Return a random time of a day, most often near noon, and early enough for the visit to end on the same day."""
    return FIRST_DAY + timedelta(days=day, seconds=int((rng.random() + rng.random()) / 2 * 86_000))


def expected_views(lines: Sequence[Line]) -> dict[str, object]:
    """Return the views export of the whole month, and the counts of an import."""
    views = [(f"{line.at:%Y-%m-%d}", line.means) for line in lines if isinstance(line.means, PageView)]
    read = [(day, view) for day, view in views if view.traffic != "bot"]
    by_path = counts((view.path, view.traffic) for _, view in read)
    by_day = counts((day, view.traffic) for day, view in read)
    agents = Counter(view.agent for _, view in read if view.agent)
    skipped = Counter(line.means for line in lines if not isinstance(line.means, PageView | Error))
    errors = Counter(line.means for line in lines if isinstance(line.means, Error))
    of_ai = [(error, requests) for error, requests in errors.items() if error.traffic == "ai"]
    ranked = sorted(by_path.items(), key=lambda item: (-sum(item[1].values()), item[0].encode()))
    human, ai = (sum(row[traffic] for row in by_path.values()) for traffic in ("human", "ai"))
    return {
        "totals": {"human": human, "ai": ai, "total": human + ai},
        "views": [{"path": path, **row, "total": sum(row.values())} for path, row in ranked],
        "bots": len(views) - len(read),
        "lines": len(lines),
        "page_views": len(views),
        "errors": errors.total(),
        "ai_errors": [
            {"path": error.path, "agent": error.agent, "status": error.status, "requests": requests}
            for error, requests in sorted(of_ai, key=lambda row: (-row[1], row[0].path.encode(), row[0].agent))
        ],
        "skipped": {reason: skipped[reason] for reason in get_args(Reason)},
        "by_day": dict(sorted(by_day.items())),
        "by_agent": dict(sorted(agents.items(), key=lambda item: (-item[1], item[0]))),
    }


def counts(read: Iterator[tuple[str, Traffic]]) -> dict[str, dict[str, int]]:
    """Return the number of reads by people and by AI for each key."""
    rows: dict[str, dict[str, int]] = {}
    for key, traffic in read:
        rows.setdefault(key, {"human": 0, "ai": 0})[traffic] += 1
    return rows


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
