"""What reports group and filter by, what they add up, and the cubes in which rollups count it.

A page view is a cell with the count 1. Rollups, files of `hits`, and waiting rows are relations of cells with the same
columns, and a report is one sum over their union. To add a dimension, add a row to DIMENSIONS; to
add a measure, add a row to MEASURES.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from warehouse.columns import evidence
from warehouse.columns.sources import BITS, SEND_STATUS, SOURCES, TRAFFIC

QUARTER_S = 900
"""Length of a quarter of an hour, in seconds."""


class Aspect(Enum):
    """Aspect of a page view that a dimension describes. The dimensions of an aspect are counted together in a cube."""

    READER = "reader"
    DEVICE = "device"
    ORIGIN = "origin"
    ADVERTISEMENT = "advertisement"
    PLACE = "place"
    PATH = "path"
    TIME = "time"
    EVIDENCE = "evidence"
    """Columns of the evidence for a classification. The user agent is in no cube: it is for reports of few days."""
    PRESENCE = "presence"
    """Columns of the evidence that a person was there."""
    VISIT = "visit"
    """Values of a visit, which its views have by `visits.of_views`. No cube has them beside others."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A value of a page view. `name` is its name in the API, and `sql` an expression over the columns of `hits`.

    `choices` are the values of a closed set. `readers` and `recorded_by` are the traffic and the sources that can have
    a value; it is unknown for all others. The dimensions of a reader are columns of each cube but `quarters`, so that
    every report can filter by them. `has_visitors`: rollups count visitors and visits by its values.
    """

    name: str
    title: str
    sql: str
    meaning: str
    aspect: Aspect
    choices: tuple[str, ...] = ()
    example: str | None = None
    readers: tuple[str, ...] = TRAFFIC
    recorded_by: tuple[str, ...] = SOURCES
    has_visitors: bool = False


DIMENSIONS: tuple[Dimension, ...] = (
    Dimension("traffic", "Readers", "traffic", "people, AI agents or other bots", Aspect.READER, TRAFFIC),
    Dimension(
        "agent", "Agent", "agent", "name of the AI agent or bot", Aspect.READER, example="GPTBot", readers=("ai", "bot")
    ),
    Dimension(
        "operator", "Operator", "operator", "who runs the AI agent", Aspect.READER, example="OpenAI", readers=("ai",)
    ),
    Dimension(
        "purpose", "Purpose", "purpose", "purpose of the AI agent", Aspect.READER,
        ("training", "search", "assistant", "agent", "data"), readers=("ai",),
    ),
    Dimension(
        "verification", "Verification", "coalesce(verification, CASE WHEN traffic <> 'human' THEN 'not_checked' END)",
        "result of the check of the agent's identity", Aspect.READER,
        ("verified", "signed_known_key", "spoofed", "invalid_signature", "claimed", "not_checked"),
        readers=("ai", "bot"),
    ),
    Dimension("sources", "Source", BITS, "source that counted the page view", Aspect.READER, SOURCES),
    Dimension(
        "evidence", "Evidence", "evidence", "strongest evidence that the visitor of the day is a person",
        Aspect.PRESENCE, evidence.VALUES, readers=("human",),
    ),
    Dimension(
        "channel", "Channel", "channel", "how a person came to the site", Aspect.ORIGIN,
        example="Search", readers=("human",), has_visitors=True,
    ),
    Dimension(
        "referrerHost", "Referrer", "referrer_host", "host of the referring URL", Aspect.ORIGIN,
        example="t.co", has_visitors=True,
    ),
    *(
        Dimension(
            f"utm{name.capitalize()}", f"UTM {name}", f"utm_{name}", f"utm_{name} of the page's address", aspect,
            has_visitors=aspect is Aspect.ORIGIN,
        )
        for name, aspect in (
            ("source", Aspect.ORIGIN), ("medium", Aspect.ORIGIN), ("campaign", Aspect.ORIGIN),
            ("term", Aspect.ADVERTISEMENT), ("content", Aspect.ADVERTISEMENT),
        )
    ),
    Dimension(
        "click", "Click id", "click", "name of an advertisement's or Meta's parameter in the page's address",
        Aspect.ADVERTISEMENT, example="gclid",
    ),
    Dimension(
        "country", "Country", "country", "country of the reader, two letters", Aspect.PLACE,
        example="DE", readers=("human",), has_visitors=True,
    ),
    Dimension(
        "language", "Language", "language", "first language of the reader", Aspect.PLACE,
        example="pt-BR", readers=("human",), has_visitors=True,
    ),
    Dimension(
        "browser", "Browser", "browser", "family of the browser", Aspect.DEVICE, example="Firefox", readers=("human",)
    ),
    Dimension("os", "System", "os", "family of the operating system", Aspect.DEVICE),
    Dimension("device", "Device", "device", "kind of device", Aspect.DEVICE),
    Dimension(
        "format", "Format", "format", "media type served, such as text/markdown", Aspect.DEVICE, recorded_by=SEND_STATUS
    ),
    Dimension("status", "Status", "status::VARCHAR", "HTTP status served", Aspect.DEVICE, recorded_by=SEND_STATUS),
    Dimension("rule", "Rule", "rule", "rule that classified the page view", Aspect.DEVICE),
    Dimension("path", "Page", "path", "normalised path", Aspect.PATH, example="/docs/*", has_visitors=True),
    Dimension("day", "Day", "date", "UTC day", Aspect.TIME),
    Dimension(
        "quarter", "Quarter", f"((epoch_us(ts) - epoch_us(date::TIMESTAMP)) // {QUARTER_S * 1_000_000})::UTINYINT",
        "quarter of an hour of the UTC day, 0 to 95", Aspect.TIME,
    ),
    Dimension(
        "second", "Second", "(epoch_us(ts) + 62_135_596_800_000_000) // 1_000_000 - 62_135_596_800",
        "second since 1970; numbered from the year 1 before, because division rounds towards 0", Aspect.TIME,
    ),
    Dimension("userAgent", "User agent", "user_agent", "user agent as received", Aspect.EVIDENCE),
    Dimension("verifiedBy", "Verified by", "verified_by", "method of the check, and its list", Aspect.EVIDENCE),
    Dimension(
        "entryPage", "Entry page", "entryPage", "first page of a visit", Aspect.VISIT,
        example="/docs/*", readers=("human",), has_visitors=True,
    ),
    Dimension(
        "exitPage", "Exit page", "exitPage", "last page of a visit", Aspect.VISIT,
        example="/pricing", readers=("human",), has_visitors=True,
    ),
)  # fmt: skip
BY_NAME = {each.name: each for each in DIMENSIONS}


def _names(*aspects: Aspect) -> tuple[str, ...]:
    return tuple(each.name for each in DIMENSIONS if each.aspect in aspects)


READER = _names(Aspect.READER)
OF_VISITS = _names(Aspect.VISIT)
"""Dimensions of visits: the first and the last page."""
AGENT_KEY = ("agent", "operator", "purpose", "verification")
"""Dimensions that say which AI agent or bot a reader was."""
TOGETHER = (
    (("source", "traffic", *AGENT_KEY),),
    (("browser", "os", "device"),),
    (("referrerHost",), ("utmSource",)),
    (("format", "status"),),
)
"""Sets of dimensions, by the names of the API, that one statement counts, because a page shows several of them.

The values of a set are counted together and added up by each dimension, so it has no two open dimensions."""
TOGETHER_IN_VISITS = ((*chain(*TOGETHER), ("channel",), ("country",), ("language",), ("day",)),)
"""Sets that one statement counts with a filter by entry or exit page: finding the visits takes longest."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A sum over page views. `sql` is the whole number of one page view, an expression over the columns of `hits`."""

    name: str
    sql: str
    meaning: str


MEASURES = (
    Measure("views", "1", "page views"),
    Measure("identified", "(visitor IS NOT NULL)::INTEGER", "page views whose visitor is known"),
)
"""Sums that each cube of page views and their cells have. Ranked paths have the measure `views` alone."""
VISITOR_MEASURES = (
    Measure("visitors", "0", "distinct visitors of each UTC day, added up"),
    Measure("visits", "1", "visits of people"),
    Measure("bounces", "(views = 1 AND NOT is_active)::INTEGER", "visits of one view without an event"),
    Measure("visit_seconds", "seconds", "seconds of the visits, also the visible time of the last page"),
    Measure("visit_views", "views", "page views of the visits"),
)
"""Sums of the cells of visitors and visits. `sql` is the number of a visit: see `visits`."""


def each_measure(expression: str, measures: Sequence[Measure] = MEASURES) -> str:
    """Return an expression for each measure, as a list of a SELECT. `{name}` and `{sql}` are replaced."""
    return ", ".join(expression.format(name=measure.name, sql=measure.sql) for measure in measures)


@dataclass(frozen=True, slots=True)
class Cube:
    """A Parquet file of a rollup: the page views by day and `columns`.

    `has_months`: the file also has the sums of its days, as rows of the day 0. It is added up from the file of the cube
    `base`; without one it is counted from `hits`. `is_large`: it has a cell for each page view. `measures` are the sums
    of its cells.
    """

    name: str
    columns: tuple[str, ...]
    has_months: bool = True
    base: str | None = None
    is_large: bool = False
    measures: tuple[Measure, ...] = MEASURES

    @property
    def file(self) -> str:
        return f"{self.name}.parquet"

    def has(self, names: Collection[str]) -> bool:
        """Return whether cells of the cube have all of these columns. All cubes have the day."""
        return {*self.columns, "day"}.issuperset(names)


CUBES = (
    Cube("totals", ("traffic", "sources"), base="page_views"),
    Cube("readers", (*READER, "verifiedBy"), base="reader_quarters"),
    Cube("quarters", ("traffic", "sources", "quarter"), has_months=False, base="reader_quarters"),
    Cube("reader_quarters", (*READER, "verifiedBy", "quarter"), has_months=False, base="path_views"),
    Cube("devices", (*READER, *_names(Aspect.DEVICE)), base="page_views"),
    Cube("origins", (*READER, *_names(Aspect.ORIGIN)), base="page_views"),
    Cube("page_views", (*READER, *_names(Aspect.DEVICE), *_names(Aspect.ORIGIN)), base="path_views"),
    Cube("places", (*READER, *_names(Aspect.PLACE)), base="path_views"),
    Cube("advertisements", (*READER, *_names(Aspect.ORIGIN, Aspect.ADVERTISEMENT)), base="path_views"),
    Cube("paths", ("path", *READER), base="path_views"),
    Cube(
        "path_views",
        (
            "path",
            *READER,
            "verifiedBy",
            *_names(Aspect.DEVICE, Aspect.ORIGIN, Aspect.ADVERTISEMENT, Aspect.PLACE),
            "quarter",
        ),
        has_months=False,
        is_large=True,
    ),
)
"""Cubes, those with fewer cells first, each before its base. Columns with fewer values are first, to save space."""
VISITORS = Cube(
    "visitors",
    ("dimension", "value", *AGENT_KEY, "browser", "os", "device", "quarter", "sources"),
    measures=VISITOR_MEASURES,
)
"""Cube of visitors and visits: see `visits`. A cell without a value has the device, and one of the dimension `quarter`
the time: with both, the cube would have a cell for most visitors."""


def find_cube(columns: Collection[str]) -> Cube | None:
    """Return the smallest cube whose cells have these columns, or the set of them; None if only `hits` has all."""
    names = {"sources" if name == "evidence" else name for name in columns}
    return next((cube for cube in CUBES if cube.has(names)), None)


def dimension(name: str) -> Dimension:
    """Return the dimension of a name of the API."""
    return BY_NAME["sources" if name == "source" else name]


def public() -> Iterator[str]:
    """Yield the names of the dimensions that the API has."""
    for each in DIMENSIONS:
        if each.aspect not in {Aspect.TIME, Aspect.EVIDENCE, Aspect.VISIT}:
            yield "source" if each.name == "sources" else each.name


BREAKDOWNS = tuple(name for name in public() if name != "traffic")
"""Dimensions of breakdowns, by the names of the API."""
PAGES = ("path", *OF_VISITS)
"""Filters by an exact path, a prefix or a part."""
FILTERS = (*PAGES, *(name for name in public() if name != "path"))
"""Dimensions by which reports filter, by the names of the API."""
