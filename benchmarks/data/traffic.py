"""Distributions of generated hits: projects, paths by Zipf's law, people, AI agents and bots, referrers, times of day.

The user agents are classified by the current rules, so that each row is one that the service could have stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.channels.channels import channel
from ingest.classification.agents import AGENTS
from ingest.classification.rules import CRAWLERS
from ingest.hits.row import classify_user_agents
from warehouse.schema import ASSET_LOADS, HOT, TIMESTAMP

LARGE = "bench"
"""Name of the large project. It is also the project of `benchmarks.service.server`."""
LARGE_SHARE = 0.9
"""Fraction of the hits that are of the large project; the other projects have equal parts of the rest."""
SMALL_PATHS = 200
"""Number of paths of each other project."""
TRAFFIC = {"human": 0.70, "ai": 0.15, "bot": 0.15}
"""Fraction of the hits by traffic."""
AI_AGENTS, BOTS, HOSTS = 40, 100, 5_000
"""Numbers of AI agents, of named bots, and of referrer hosts."""
DAY_US = 86_400_000_000
_TIME_BITS = 37
"""Number of bits of a time of day in microseconds."""

_SECTIONS = ("api", "blog", "changelog", "docs", "guides", "help", "pricing", "reference", "tutorials")
_TOPICS = ("install", "upgrade", "deploy", "export", "import", "monitor", "secure", "automate", "query", "visualise")
_DESKTOP = ("Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64")
_CHROME = "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 {}Safari/537.36"
_SAFARI = "Mozilla/5.0 ({}) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{}.{} {}Safari/{}"
_AI = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {}/1.0)"

_SERVED: Sequence[tuple[str | None, int | None, str, tuple[float, float, float]]] = (
    (None, None, "beacon", (0.55, 0.0, 0.0)),
    ("html", 200, "server", (0.10, 0.05, 0.05)),
    ("markdown", 200, "server", (0.0, 0.10, 0.0)),
    ("html", 200, "log", (0.30, 0.55, 0.60)),
    ("markdown", 200, "log", (0.0, 0.20, 0.01)),
    ("json", 200, "log", (0.0, 0.02, 0.04)),
    ("html", 304, "log", (0.03, 0.03, 0.05)),
    ("html", 404, "log", (0.02, 0.05, 0.20)),
    (None, 500, "log", (0.0, 0.0, 0.05)),
)
"""Format, status and source of a hit, with the fraction of people's, agents' and bots' hits."""
_REFERRED, _IN_CAMPAIGN = (0.5, 0.02, 0.05), (0.06, 0.0, 0.01)
"""Fractions of people's, agents' and bots' hits that have a referrer, and a `utm_source`."""
_CAMPAIGNS = tuple(
    (f"{kind}-{month}", medium)
    for kind, medium in (("newsletter", "email"), ("social", "social"), ("partner", "affiliate"))
    for month in range(1, 13)
)
"""Pairs of `utm_source` and `utm_medium`."""
_KNOWN_HOSTS = (
    "www.google.com", "chatgpt.com", "www.bing.com", "news.ycombinator.com", "www.perplexity.ai", "t.co",
    "www.youtube.com", "duckduckgo.com",
)  # fmt: skip
_COUNTRIES = [f"{first}{second}" for first in "ABCDEFGH" for second in "ELNRS"]
_LANGUAGES = ["en-US", "en-GB", "de", "fr", "es", "pt-BR", "ja", "zh-CN", "hi", "it"]
_LOCATED = (0.9, 0.0, 0.0)
"""Fraction of people's, agents' and bots' visits with a country and a language."""
VIEWS_PER_VISIT = 2.5
BETWEEN_VIEWS_S = 120
"""Mean time from the first view of a visit to another one, in seconds."""
AGENT_ADDRESSES = 50
"""Number of addresses of each agent and bot on a day."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Rows of dictionary-encoded columns, of which each hit has one, and their cumulative probabilities by traffic."""

    rows: pa.Table
    cumulated: npt.NDArray[np.float64]

    def draw(self, rng: np.random.Generator, traffic: npt.NDArray[np.int64]) -> pa.Table:
        """Return a random row for each hit; `traffic` has the index of the hit's traffic in TRAFFIC."""
        # One search in all three distributions: that of traffic 1 is searched from 1 to 2.
        rows = np.searchsorted(self.cumulated.ravel(), rng.random(len(traffic)) + traffic)
        return self.rows.take(pa.array(rows - traffic * self.cumulated.shape[1]))


@dataclass(frozen=True, slots=True)
class Pages:
    """All pages, sorted by project and path: the index of each one's project and path, and the cumulative shares."""

    projects: pa.Array
    paths: pa.Array
    project: npt.NDArray[np.int32]
    path: npt.NDArray[np.int32]
    cumulated: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Traffic:
    """All distributions of a lake."""

    pages: Pages
    user_agents: pa.Table
    """Classified user agents, in the order of TRAFFIC."""
    user_agents_cumulated: npt.NDArray[np.float64]
    user_agents_traffic: npt.NDArray[np.int64]
    choices: tuple[Choice, ...]
    """Columns that each hit has its own values of."""
    visit_choices: tuple[Choice, ...]
    day_cumulated: npt.NDArray[np.float64]
    """Cumulative shares of the quarter-hours of a day."""


def create(projects: int, paths: int) -> Traffic:
    """Return the distributions of a lake of some projects, the large one with `paths` paths."""
    user_agents, traffic = _user_agents()
    shares = np.array(list(TRAFFIC.values()))[traffic]
    for index in range(len(TRAFFIC)):
        shares[traffic == index] *= _zipf(int(np.count_nonzero(traffic == index)))
    quarters = 1.0 + 0.8 * np.sin((np.arange(96) - 32) / 96 * 2 * np.pi)  # most hits at 14:00, fewest at 02:00
    choices = (_served(), _referrers(), _campaigns())
    places = _named("country", _COUNTRIES), _named("language", _LANGUAGES)
    return Traffic(
        pages(projects, paths), user_agents, _cumulated(shares), traffic, choices, places, _cumulated(quarters)
    )


def day_rows(traffic: Traffic, rng: np.random.Generator, day: date, hits: int) -> pa.Table:
    """Return the hits of a UTC day in the order of a file of `hits`, with the columns of `schema.HOT`."""
    visits = max(1, round(hits / VIEWS_PER_VISIT))
    page, time_us, visit = _pages_and_times(traffic, rng, hits, visits)
    user_agents = np.searchsorted(traffic.user_agents_cumulated, rng.random(visits))
    user_agent = user_agents[visit]
    start_us = np.int64(datetime.combine(day, time(), UTC).timestamp()) * 1_000_000
    columns = {
        "project_id": pa.DictionaryArray.from_arrays(traffic.pages.project[page], traffic.pages.projects),
        "ts": pa.array(time_us + start_us, TIMESTAMP),
        "path": traffic.pages.paths.take(pa.array(traffic.pages.path[page])),
        **{field.name: pa.nulls(hits, field.type) for field in HOT if field.nullable},
    }
    of_hits = [choice.draw(rng, traffic.user_agents_traffic[user_agent]) for choice in traffic.choices]
    kinds = traffic.user_agents_traffic[user_agents]
    of_visits = [choice.draw(rng, kinds).take(pa.array(visit)) for choice in traffic.visit_choices]
    for table in (traffic.user_agents.take(pa.array(user_agent)), *of_hits, *of_visits):
        columns |= dict(zip(table.column_names, table.columns, strict=True))
    is_person = traffic.user_agents_traffic[user_agent] == 0
    channels = pc.coalesce(columns.pop("tagged").cast(pa.string()), columns["channel"].cast(pa.string()))
    columns["channel"] = pc.if_else(pa.array(is_person), channels, None).combine_chunks().dictionary_encode()
    columns["visitor"] = _visitors(is_person, visit, user_agent, traffic.pages.project[page], day)
    is_log = pc.equal(columns["source"].combine_chunks().cast(pa.string()), "log").to_numpy(zero_copy_only=False)
    received_us = np.where(is_log, DAY_US, time_us) + start_us  # a log is imported at midnight
    return pa.table({**columns, "received_at": pa.array(received_us, TIMESTAMP)})


def _visitors(
    is_person: npt.NDArray[np.bool_],
    visit: npt.NDArray[np.int64],
    user_agent: npt.NDArray[np.int64],
    project: npt.NDArray[np.int32],
    day: date,
) -> pa.Array:
    """Return the visitor of each hit: a person has one visit a day, and an agent AGENT_ADDRESSES sources."""
    source = np.where(is_person, visit, -1 - (user_agent * AGENT_ADDRESSES + visit % AGENT_ADDRESSES))
    mixed = (source * 1_024 + project).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29)) ^ np.uint64(day.toordinal())) * np.uint64(0xBF58476D1CE4E5B9)
    return pa.array((mixed ^ (mixed >> np.uint64(32))).view(np.int64))


def asset_loads(hits: pa.Table, day: date) -> pa.Table:
    """Return the rows of `asset_loads` of a day's hits: two of three people loaded assets."""
    visitor = hits["visitor"].combine_chunks()
    loaded = (visitor.to_numpy() % 3 > 0) & pc.equal(hits["traffic"].cast(pa.string()), "human").to_numpy()
    columns = [hits["project_id"].cast(pa.string()).combine_chunks(), pa.array([day] * len(hits)), visitor]
    ones = pa.array(np.full(len(hits), 3))
    return pa.Table.from_arrays([*columns, ones], schema=ASSET_LOADS).filter(pa.array(loaded))


def hits_by_day(hits: int, days: int, end: date) -> dict[date, int]:
    """Return the number of hits of each day before `end`: more on working days, `hits` in all."""
    dates = [end - timedelta(days=before) for before in range(days, 0, -1)]
    shares = np.array([0.7 if each.weekday() >= 5 else 1.12 for each in dates])
    through = np.round(_cumulated(shares) * hits).astype(int)
    return dict(zip(dates, np.diff(through, prepend=0).tolist(), strict=True))


def _pages_and_times(
    traffic: Traffic, rng: np.random.Generator, hits: int, visits: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the page, the time of day, in microseconds, and the visit of each hit, sorted by page and time."""
    page = np.searchsorted(traffic.pages.cumulated, np.sort(rng.random(hits)))  # faster than unsorted
    quarters = np.concatenate(([0.0], traffic.day_cumulated))
    began_us = np.interp(rng.random(visits), quarters, np.linspace(0, DAY_US, len(quarters)))
    visit = rng.integers(0, visits, hits)
    time_us = (began_us[visit] + rng.exponential(BETWEEN_VIEWS_S * 1_000_000, hits)).astype(np.int64)
    key = page << _TIME_BITS | np.minimum(time_us, DAY_US - 1)
    order = np.argsort(key)
    return page, key[order] & ((1 << _TIME_BITS) - 1), visit[order]


def pages(projects: int, paths: int) -> Pages:
    """Return the pages of all projects. The popularity of a path does not depend on its place in the order of paths."""
    names = [LARGE, *(f"small-{number:04}" for number in range(1, projects))]
    texts = np.array([_path(rank) for rank in range(max(paths, SMALL_PATHS))], dtype="S")
    order = np.argsort(texts)
    place = np.argsort(order).astype(np.int32)
    project, path, shares = [], [], []
    for index in range(projects):
        number = SMALL_PATHS if index else paths
        by_path = np.argsort(place[:number])
        share = (1 - LARGE_SHARE) / (projects - 1) if index else LARGE_SHARE
        project.append(np.full(number, index, np.int32))
        path.append(place[:number][by_path])
        shares.append(_zipf(number)[by_path] * share)
    return Pages(
        pa.array(names),
        pa.array(texts[order].astype("U")),
        np.concatenate(project),
        np.concatenate(path),
        _cumulated(np.concatenate(shares)),
    )


def sample_user_agents() -> list[str]:
    """Return user agents of people and AI agents."""
    return [*_browsers(), *_ai_agents()]


def _path(rank: int) -> str:
    topics = f"{_TOPICS[rank // 9 % 10]}-{_TOPICS[rank // 90 % 10]}"
    return f"/{_SECTIONS[rank % 9]}/{topics}-{rank}"


def _user_agents() -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the classified user agents in the order of TRAFFIC, and the index of each one's traffic."""
    bots = {instance.pattern: instance.instances[0] for instance in CRAWLERS if instance.instances}
    classified = classify_user_agents([*sample_user_agents(), *list(bots.values())[:BOTS]])
    order = {name: index for index, name in enumerate(TRAFFIC)}
    traffic = np.array([order[each] for each in classified["traffic"].to_pylist()])
    by_traffic = np.argsort(traffic, kind="stable")
    return _encoded(classified.take(pa.array(by_traffic))), traffic[by_traffic]


def _ai_agents() -> list[str]:
    return [_AI.format(agent.tokens[0].rstrip("/")) for agent in AGENTS[::2][:AI_AGENTS]]


def _browsers() -> list[str]:
    """Return user agents of people, the newest versions first."""
    texts = []
    for version in range(145, 115, -1):
        for system in _DESKTOP:
            texts.append(_CHROME.format(system, version, ""))
            texts.append(f"Mozilla/5.0 ({system}; rv:{version}.0) Gecko/20100101 Firefox/{version}.0")
        texts.append(f"{_CHROME.format(_DESKTOP[0], version, '')} Edg/{version}.0.0.0")
        texts += [_CHROME.format(f"Linux; Android {10 + version % 6}; K", version, "Mobile ")]
        major, minor = divmod(version - 26, 6)
        texts.append(_SAFARI.format(_DESKTOP[1], major, minor, "", "605.1.15"))
        system = f"iPhone; CPU iPhone OS {major}_{minor} like Mac OS X"
        texts.append(_SAFARI.format(system, major, minor, "Mobile/15E148 ", "604.1"))
    return texts


def _served() -> Choice:
    formats, statuses, sources, shares = zip(*_SERVED, strict=True)
    rows = pa.table({"format": formats, "status": pa.array(statuses, pa.int16()), "source": sources})
    return Choice(_encoded(rows), _cumulated_by_traffic(np.array(shares).T))


def _referrers() -> Choice:
    hosts = [*_KNOWN_HOSTS, *(f"{_TOPICS[number % 10]}{number}.example" for number in range(HOSTS - len(_KNOWN_HOSTS)))]
    rows = pa.table(
        {
            "referrer": [None, *(f"https://{host}/" for host in hosts)],
            "referrer_host": [None, *hosts],
            "channel": [channel(host, None, None, None) for host in (None, *hosts)],
        }
    )
    return Choice(_encoded(rows), _with_null(_REFERRED, HOSTS))


def _campaigns() -> Choice:
    sources, media = zip((None, None), *_CAMPAIGNS, strict=True)
    rows = {
        "utm_source": sources,
        "utm_medium": media,
        "utm_campaign": sources,
        "tagged": [
            source and channel(None, source, medium, None) for source, medium in zip(sources, media, strict=True)
        ],
    }
    return Choice(_encoded(pa.table(rows)), _with_null(_IN_CAMPAIGN, len(_CAMPAIGNS)))


def _named(column: str, values: list[str]) -> Choice:
    return Choice(_encoded(pa.table({column: [None, *values]})), _with_null(_LOCATED, len(values)))


def _with_null(shares: Sequence[float], values: int) -> npt.NDArray[np.float64]:
    """Return the probabilities of null and of `values` values, which have the given shares of the hits by traffic."""
    rows = [np.concatenate(([1 - share], _zipf(values) * share)) for share in shares]
    return _cumulated_by_traffic(np.array(rows))


def _zipf(number: int) -> npt.NDArray[np.float64]:
    """Return shares by Zipf's law with exponent 1, largest first."""
    weights = 1 / np.arange(1, number + 1)
    return np.asarray(weights / weights.sum())


def _cumulated(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return cumulative shares that end in exactly 1."""
    cumulated = np.cumsum(shares)
    return np.asarray(cumulated / cumulated[-1])


def _cumulated_by_traffic(shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the cumulative shares of each traffic, raised by the index of the traffic."""
    return np.array([_cumulated(row) + index for index, row in enumerate(shares)])


def _encoded(rows: pa.Table) -> pa.Table:
    """Return the rows with dictionary-encoded texts, in one chunk."""
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    return pa.table(
        {
            name: column.dictionary_encode() if pa.types.is_string(column.type) else column
            for name, column in columns.items()
        }
    )
