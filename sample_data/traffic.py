"""Tables of `traffic.toml`: the pages, readers, referrers and other requests, each with its meaning."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

Traffic = Literal["human", "ai", "bot"]
Reason = Literal["method", "status", "not_a_page", "not_a_request", "malformed"]
Group = Literal["people", "ai", "crawlers", "tools"]

HERE = Path(__file__).parent
SEED = 20260901
FIRST_DAY = datetime(2026, 9, 1, tzinfo=UTC)
DAYS = 30
WEEKEND_SHARE = 0.6  # of a weekday's people

ZONES = tuple(timezone(timedelta(minutes=minutes)) for minutes in (0, 120, -420, 330))
ZONE_WEIGHTS = (82, 8, 8, 2)
MONTHS = {8: "Aug", 9: "Sep", 10: "Oct"}
TRAFFIC: dict[Group, Traffic] = {"people": "human", "ai": "ai", "crawlers": "bot", "tools": "bot"}


@dataclass(frozen=True, slots=True)
class Habit:
    """Visits per day of a group of readers on the first and last day of the month, and mean requests per visit."""

    group: Group
    visits_first: int
    visits_last: int
    pages_mean: float
    skipped_mean: float


@dataclass(frozen=True, slots=True)
class Page:
    path: str
    weights: dict[Group, int]
    targets: list[str]


@dataclass(frozen=True, slots=True)
class Reader:
    group: Group
    weight: int
    user_agent: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Referrer:
    weight: int
    url: str
    query: str = ""


@dataclass(frozen=True, slots=True)
class SkippedRequest:
    group: Group
    weight: int
    request: str
    status: int
    reason: Reason | Literal["error"]


@dataclass(frozen=True, slots=True)
class OddRequest:
    """A request that is logged with exactly this text.

    It is a page view by a person if it has a `path`, otherwise an error of a bot, or skipped for its `reason`.
    """

    request: str
    status: int
    user_agent: str = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"
    referrer: str = "-"
    encoding: str = "utf-8"
    path: str = ""
    reason: Reason | Literal["error"] = "malformed"


TABLES = tomllib.loads((HERE / "traffic.toml").read_text(encoding="utf-8"))
HABITS = [Habit(**row) for row in TABLES["habits"]]
PAGES = [Page(**row) for row in TABLES["pages"]]
READERS = [Reader(**row) for row in TABLES["readers"]]
REFERRERS = [Referrer(**row) for row in TABLES["referrers"]]
SKIPPED = [SkippedRequest(**row) for row in TABLES["skipped"]]
ODD = [OddRequest(**row) for row in TABLES["odd"]]
DIRECT = Referrer(1, "-")
