"""Random rows of `hits`, and random questions about them.

The instants are mostly near the edges of days, months, quarters of an hour and daylight saving time, and many bounds of
ranges are instants of hits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import strategies as st

from tests.warehouse.site import Row, column, view
from warehouse.columns.dimensions import BREAKDOWNS
from warehouse.columns.filters import Filters
from warehouse.control.policy import POLICIES, Period, Periods
from warehouse.query.time_range import FIRST, LAST
from warehouse.report.results import Query

PROJECTS = ["site", "site-2", "a"]
PATHS = [
    "/",
    "/a",
    "/a/b",
    "/a/b/c",
    "/a-b",  # before /a/b in byte order
    "/a0",  # the first path after the prefix /a/
    "/ab",
    "/Z",
    "/a*",
    "/it's",
    "/%C3%A9",
    "/é",
    "/éa",
    "/日本",
    "/\ud7ff",
    "/\uffff",
    "/\U0001f600",  # after /\uffff in byte order, before it in UTF-16
    "/\U0010ffff",
    "/\U0010ffff\U0010ffffa",
    "/" + 40 * "long",
]
READERS: list[dict[str, str | None]] = [
    {
        "traffic": traffic,
        "agent": agent,
        "operator": operator,
        "purpose": purpose,
        "rule": rule,
        "verification": verification,
    }
    for traffic, agent, operator, purpose, rule, verification in [
        ("human", None, None, None, "human", None),
        ("ai", "GPTBot", "OpenAI", "training", "ai:GPTBot", "verified"),
        ("ai", "ChatGPT-User", "OpenAI", "assistant", "ai:ChatGPT-User", "not_checked"),
        ("ai", "ClaudeBot", "Anthropic", "training", "ai:ClaudeBot", None),
        ("ai", None, None, None, "ai:markdown", None),
        ("bot", "curl", None, None, "bot:curl", "claimed"),
        ("bot", "Googlebot", "Google", None, "bot:Googlebot", "verified"),
        ("bot", "GPTBot", None, None, "bot:spoofed:GPTBot", "spoofed"),
        ("bot", None, None, None, "bot:empty", None),
    ]
]
SOURCES = ["beacon", "server", "log"]
USER_AGENTS = ["GPTBot/1", "ClaudeBot/1", "Firefox/1", ""]
"""User agents that the rules of the tests reclassify. Before, the classification does not depend on them."""
COLUMNS: dict[str, list[str | int | None]] = {
    "browser": [None, "Firefox", "Chrome"],
    "os": [None, "Linux", "iOS"],
    "device": [None, "desktop", "phone"],
    "referrer_host": [None, "example.com", "日本.example", "t.co"],
    "utm_source": [None, "newsletter", "", "=1+1"],
    "utm_medium": [None, "email"],
    "utm_campaign": [None, "spring"],
    "utm_term": [None, "a b"],
    "utm_content": [None, "top"],
    "click": [None, "gclid"],
    "channel": [None, "Search"],
    "country": [None, "DE", "US"],
    "language": [None, "de", "pt-BR"],
    "format": [None, "html", "markdown"],
    "status": [None, 99, 200, 304],
}
"""Values of the columns that depend on nothing else. No status is one of an error, which is not stored in `hits`."""
DEVICE = ("browser", "os", "device")
REFERRERS = ["https://example.org/a/?q#", "https://example.org/index.html", "https://example.org"]
VISITORS = 10
"""Number of visitors of a day, most of them people."""
BY_COLUMNS = ["path", "source", *(name for name in READERS[0]), *COLUMNS]
"""Columns of `hits` that reports read, beside the project and the time."""
BY = [*BREAKDOWNS]
INTERVALS = ["hour", "day", "week", "month"]
ZONES = [
    "UTC",
    "Asia/Kathmandu",
    "America/New_York",
    "Pacific/Apia",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Pacific/Kiritimati",
    "America/St_Johns",
]
ALL_ZONES = sorted(available_timezones() - {"localtime"})

DAYS = [
    datetime(2026, *month_and_day, tzinfo=UTC)
    for month_and_day in [
        *((2, 28), (3, 1), (3, 7), (3, 8)),  # the end of a month; daylight saving time begins in New York
        *((6, 30), (7, 1), (9, 15)),
        *((10, 25), (10, 31), (11, 1), (11, 21), (11, 22)),  # it ends in Berlin and in New York; today
    ]
]
MONTHS = sorted({f"{day:%Y-%m}" for day in DAYS})
NOW = datetime(2026, 11, 22, 13, 37, 0, 500_000, tzinfo=UTC)
OLD = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2011, 12, 30, 9, 59, tzinfo=UTC),  # the clocks of Apia skip from the end of the 29th to the 31st
    datetime(2011, 12, 30, 10, tzinfo=UTC),
]
LATER = [NOW, NOW + timedelta(microseconds=1), NOW + timedelta(minutes=4)]
"""Times of senders whose clock is ahead."""
DAY_US, MINUTE_US = 86_400_000_000, 60_000_000
EDGES_US = [
    edge
    for minutes in (0, 15, 5 * 60, 6 * 60, 7 * 60, 10 * 60, 12 * 60, 15 * 60 + 30, 18 * 60 + 15, 23 * 60 + 45)
    for edge in (minutes * MINUTE_US - 1, minutes * MINUTE_US, minutes * MINUTE_US + 1)
]
"""Times of day in microseconds: midnight and changes of the clock in the zones, each with its neighbours."""
FILTER_VALUES = {
    "traffic": ["human", "ai", "bot"],
    "source": SOURCES,
    "verification": ["not_checked", "verified"],
    **{
        name: [*sorted({each[name] for each in READERS if each[name] is not None}), "none"]
        for name in ("agent", "operator", "purpose")
    },
    **{
        name: [*(str(value) for value in COLUMNS[column(name)] if value), "none"]
        for name in BREAKDOWNS
        if column(name) in COLUMNS
    },
    "rule": ["human", "ai:GPTBot", "none"],
}
FILTERED = ("path", *FILTER_VALUES)


@dataclass(frozen=True)
class Views:
    """A page of the paths."""

    offset: int
    limit: int


@dataclass(frozen=True)
class Breakdown:
    """A page of the values of a breakdown."""

    by: str
    offset: int
    limit: int


@dataclass(frozen=True)
class Series:
    """A series in a time zone."""

    interval: str
    zone: str

    @property
    def zone_info(self) -> ZoneInfo:
        return ZoneInfo(self.zone)


Form = Views | Breakdown | Series
chances = st.integers(0, 2**32).map(Random)
"""Sources of the functions below. Drawn value by value, a sequence would exceed the size of a Hypothesis example."""


def row(chance: Random, paths: int = 0, days: Sequence[datetime] = DAYS) -> Row:
    """Return a row. With `paths`, most rows have one of so many further paths."""
    is_listed = not paths or chance.random() < 0.2
    visitor = chance.choice([None, *range(VISITORS)])
    reader = chance if visitor is None else Random(visitor)  # the same reader and device each time
    return view(
        chance.choice(PATHS) if is_listed else f"/p/{chance.randrange(paths)}",
        instant(chance, days),
        project_id=chance.choice(PROJECTS),
        source=chance.choice(SOURCES),
        user_agent=reader.choice(USER_AGENTS),
        visitor=visitor,
        referrer=chance.choice(REFERRERS),
        **reader.choice([*READERS, *READERS[:1] * (0 if visitor is None else 9)]),
        **{name: (reader if name in DEVICE else chance).choice(values) for name, values in COLUMNS.items()},
    )


def rows(chance: Random, count: int, paths: int) -> list[Row]:
    """Return rows of two days, and a few of all others."""
    days = chance.sample(DAYS, 2)  # each day costs a second of the test: in files, in loads and in rewrites
    return [*(row(chance, paths, days) for _ in range(count)), *(row(chance) for _ in range(chance.randrange(4)))]


def instant(chance: Random, days: Sequence[datetime] = DAYS) -> datetime:
    if days is DAYS and chance.random() < 0.1:
        return chance.choice(OLD + LATER)
    microseconds = chance.choice(EDGES_US) if chance.random() < 0.6 else chance.randrange(DAY_US)
    return min(chance.choice(days) + timedelta(microseconds=microseconds), LATER[-1])


def bound(chance: Random) -> datetime:
    """Return a bound of a range: an instant of hits, a midnight or the start of a month."""
    return chance.choice(
        [
            lambda: instant(chance),
            lambda: chance.choice(DAYS) + timedelta(days=chance.randrange(-1, 3)),
            lambda: datetime(2026, chance.randrange(1, 13), 1, tzinfo=UTC),
        ]
    )()


def query(chance: Random) -> Query:
    """Return a query, mostly of a range that is not empty."""
    start, end = bound(chance), bound(chance)
    if start > end and chance.random() < 0.95:
        start, end = end, start
    start = chance.choice([start, start, FIRST])
    return Query(chance.choice(PROJECTS), start, chance.choice([end, end, LAST, None]), filters(chance), NOW)


def policy(chance: Random) -> Periods:
    """Return the source policy of a project: none in half of the cases."""
    if chance.random() < 0.5:
        return ()
    days = sorted({date.min, *(day.date() for day in chance.sample(DAYS, 3))})
    periods = [Period(day, chance.choice(POLICIES)) for day in days]
    return tuple(periods[chance.randrange(2) :])


def filters(chance: Random) -> Filters:
    some = chance.sample(FILTERED, chance.randrange(1, 3))
    names = chance.choice([[], ["path"], ["source"], ["path", "traffic"], some, some, FILTERED])
    share = 0.3 if names is FILTERED else 1
    return Filters(**{name: _filter(chance, name) for name in names if chance.random() < share})


def _filter(chance: Random, name: str) -> str:
    if name == "path":
        path = chance.choice([*PATHS, "/p/1", "/p/12", "/none"])
        part = path[: chance.randrange(6)]
        return chance.choice([path, path, f"{part}*", f"*{part[1:]}*"])
    return chance.choice(FILTER_VALUES[name])


def form(chance: Random) -> Form:
    offset = chance.choice([0, 0, 1, 3, chance.randrange(30), 10**15])
    limit = chance.choice([1, 2, 5, chance.randrange(1, 30), 250])
    return chance.choice(
        [
            lambda: Views(offset, limit),
            lambda: Breakdown(chance.choice(BY), offset, limit),
            lambda: Series(chance.choice(INTERVALS), zone(chance)),
        ]
    )()


def zone(chance: Random) -> str:
    return chance.choice(ZONES if chance.random() < 0.5 else ALL_ZONES)
