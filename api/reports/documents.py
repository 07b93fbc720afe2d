"""The JSON of the reports. The reference shows the descriptions of the fields."""

from datetime import date, datetime
from typing import Annotated, Literal

import msgspec

from api.http.operation import HasMore
from warehouse.columns.sources import SOURCES
from warehouse.control.policy import Policy
from warehouse.report.measured import HABIT_DAYS, SILENT_AFTER, Extent
from warehouse.report.source_warnings import MISSING_DAYS_MAX

UNKNOWN = "null if no source counted them in this time."
Human = Annotated[int | None, msgspec.Meta(description=f"Views by people; {UNKNOWN}")]
Ai = Annotated[int | None, msgspec.Meta(description=f"Views by AI agents; {UNKNOWN}")]
Bot = Annotated[int | None, msgspec.Meta(description=f"Views by other bots, which are not in `total`; {UNKNOWN}")]
Total = Annotated[int | None, msgspec.Meta(description="`human` plus `ai`; null if both are unknown.")]

HumanViews = Annotated[int, msgspec.Meta(description="Views by people.")]
AiViews = Annotated[int, msgspec.Meta(description="Views by AI agents.")]
TotalViews = Annotated[int, msgspec.Meta(description="`human` plus `ai`.")]


class VisitorCounts(msgspec.Struct, frozen=True):
    """Visitors: distinct ones of each UTC day, added up. A count is null if no visitor was known."""

    human: Annotated[int | None, msgspec.Meta(description="People.")]
    ai: Annotated[int | None, msgspec.Meta(description="Sources of AI agents.")]
    total: Annotated[int | None, msgspec.Meta(description="People or AI; a visitor that was both counts once.")]


class Metrics(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Visitors and visits beside the views: those that the parameter `metrics` names."""

    visitors: VisitorCounts | msgspec.UnsetType = msgspec.UNSET
    visits: Annotated[
        int | msgspec.UnsetType | None, msgspec.Meta(description="Visits of people; null if no visitor was known.")
    ] = msgspec.UNSET
    bounce_rate: Annotated[
        float | msgspec.UnsetType | None,
        msgspec.Meta(description="Visits of one view, in percent of those that the script saw; null without any."),
    ] = msgspec.UNSET
    visit_duration: Annotated[
        int | msgspec.UnsetType | None,
        msgspec.Meta(
            description="Mean time from the first to the last view of the visits that the script saw, in seconds; null"
            " without any."
        ),
    ] = msgspec.UNSET
    views_per_visit: Annotated[
        float | msgspec.UnsetType | None, msgspec.Meta(description="Mean number of views of a visit; null without any.")
    ] = msgspec.UNSET


class Counts(Metrics, frozen=True):
    """Views by people, AI agents and other bots. A count is null if nothing was measured."""

    human: Human
    ai: Ai
    bot: Bot
    total: Total


class Measured(msgspec.Struct, frozen=True):
    """How much of the time range was measured, by the sources that the filters select: `all`, `part` or `none`."""

    human: Annotated[Extent, msgspec.Meta(description="Whether a source counted people.")]
    ai: Annotated[Extent, msgspec.Meta(description="Whether a source counted AI agents.")]
    bot: Annotated[Extent, msgspec.Meta(description="Whether a source counted other bots.")]


class Totals(msgspec.Struct, frozen=True):
    """Views of all paths in the time range."""

    human: HumanViews
    ai: AiViews
    total: TotalViews


class PathViews(msgspec.Struct, frozen=True):
    """Views of one path."""

    path: Annotated[str, msgspec.Meta(description="The page's path.")]
    human: HumanViews
    ai: AiViews
    total: TotalViews


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Views in a time range: the totals, and one page of the paths."""

    totals: Annotated[Totals, msgspec.Meta(description="Totals of the whole time range, on every page.")]
    views: Annotated[list[PathViews], msgspec.Meta(description="One page of the paths, most viewed first.")]
    has_more: HasMore
    measured: Measured


HumanVisitors = Annotated[int, msgspec.Meta(description="People: distinct visitors of each UTC day.")]
AiVisitors = Annotated[int, msgspec.Meta(description="Sources of AI agents: distinct visitors of each UTC day.")]
TotalVisitors = Annotated[
    int, msgspec.Meta(description="Visitors that were people or AI; one that was both counts once.")
]


class VisitorTotals(msgspec.Struct, frozen=True):
    """Visitors of all paths in the time range."""

    human: HumanVisitors
    ai: AiVisitors
    total: TotalVisitors


class PathVisitors(msgspec.Struct, frozen=True):
    """Visitors of one path."""

    path: Annotated[str, msgspec.Meta(description="The page's path.")]
    human: HumanVisitors
    ai: AiVisitors
    total: TotalVisitors


class Visitors(msgspec.Struct, frozen=True, rename="camel"):
    """Visitors in a time range: the totals, and one page of the paths."""

    totals: Annotated[VisitorTotals, msgspec.Meta(description="Totals of the whole time range, on every page.")]
    visitors: Annotated[list[PathVisitors], msgspec.Meta(description="One page of the paths, most visited first.")]
    has_more: HasMore
    measured: Measured


class IntervalViews(Metrics, frozen=True):
    """Views in one interval."""

    start: Annotated[str, msgspec.Meta(description="First day of the interval; for an hour its time with the offset.")]
    human: Human
    ai: Ai
    bot: Bot
    total: Total


class Series(msgspec.Struct, frozen=True):
    """Views in each interval of a time range."""

    series: Annotated[
        list[IntervalViews], msgspec.Meta(description="The intervals in order, also those without views.")
    ]
    totals: Annotated[Counts, msgspec.Meta(description="Totals of the whole time range.")]
    measured: Measured


class ValueViews(Metrics, frozen=True):
    """Views with one value of the dimension."""

    value: Annotated[str | None, msgspec.Meta(description="The value; null if it is unknown or does not apply.")]
    human: Human
    ai: Ai
    bot: Bot
    total: Total


class Breakdown(msgspec.Struct, frozen=True, rename="camel"):
    """Views in a time range by the values of a dimension: the totals, and one page of the values."""

    totals: Annotated[Counts, msgspec.Meta(description="Totals of the whole time range, on every page.")]
    rows: Annotated[list[ValueViews], msgspec.Meta(description="One page of the values, most viewed first.")]
    has_more: HasMore
    measured: Measured


class ErrorRow(msgspec.Struct, frozen=True, rename="camel"):
    """Requests of one path by one agent, answered with one status."""

    path: Annotated[
        str | None, msgspec.Meta(description="The path; null for unnamed bots, HTTP libraries and spoofed agents.")
    ]
    agent: Annotated[str | None, msgspec.Meta(description="Name of the AI agent or bot; null for unnamed bots.")]
    traffic: Literal["ai", "bot"]
    status: Annotated[int, msgspec.Meta(description="HTTP status of the responses.", ge=400, le=599)]
    requests: Annotated[int, msgspec.Meta(description="Number of requests in the time range.")]
    first_seen: Annotated[datetime, msgspec.Meta(description="Time of the first of these requests.")]
    last_seen: Annotated[datetime, msgspec.Meta(description="Time of the last of these requests.")]


class PathErrors(msgspec.Struct, frozen=True, rename="camel"):
    """Requests of one path that were answered with an error."""

    path: Annotated[str | None, msgspec.Meta(description="The path; null for all paths that are not stored.")]
    requests: Annotated[int, msgspec.Meta(description="Number of requests in the time range.")]
    agents: Annotated[int, msgspec.Meta(description="Number of AI agents and bots with a name.")]
    statuses: Annotated[tuple[int, ...], msgspec.Meta(description="HTTP statuses of the responses, in order.")]
    first_seen: Annotated[datetime, msgspec.Meta(description="Time of the first of these requests.")]
    last_seen: Annotated[datetime, msgspec.Meta(description="Time of the last of these requests.")]


class Errors(msgspec.Struct, frozen=True, rename="camel"):
    """One page of the errors in a time range."""

    errors: Annotated[list[ErrorRow], msgspec.Meta(description="One page of the errors, most requests first.")]
    has_more: HasMore
    paths: Annotated[
        list[PathErrors] | msgspec.UnsetType,
        msgspec.Meta(description="With `by=path`, one page of the paths; `errors` is then empty."),
    ] = msgspec.UNSET


class SourceCoverage(msgspec.Struct, frozen=True, rename="camel"):
    """A source of hits."""

    source: Annotated[str, msgspec.Meta(description=f"One of {', '.join(f'`{each}`' for each in SOURCES)}.")]
    first_hit: Annotated[datetime, msgspec.Meta(description="Time of the first hit.")]
    last_hit: Annotated[datetime, msgspec.Meta(description="Time of the last hit.")]
    missing_days: Annotated[
        tuple[date, ...],
        msgspec.Meta(
            description="UTC days without a hit between the first and the last hit; the last"
            f" {MISSING_DAYS_MAX:,} of them if there are more."
        ),
    ]
    silent_since: Annotated[
        date | None,
        msgspec.Meta(
            description="First UTC day from which the source counts nothing, because it fell silent; null if it is not"
            f" silent. A source is silent after {SILENT_AFTER} times its usual distance from one day with a hit to the"
            f" next, in the {HABIT_DAYS} days up to its last hit."
        ),
    ]


class Span(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """A time in which readers were counted."""

    start: Annotated[datetime, msgspec.Meta(description="When counting began.")]
    end: Annotated[datetime | None, msgspec.Meta(description="When counting ended, exclusive; null if it did not end.")]


class MeasuredTimes(msgspec.Struct, frozen=True):
    """Times in which each kind of readers was counted, by any source under the source policy."""

    human: tuple[Span, ...]
    ai: tuple[Span, ...]
    bot: tuple[Span, ...]


class Coverage(msgspec.Struct, frozen=True, rename="camel"):
    """The sources that have sent hits."""

    sources: Annotated[
        list[SourceCoverage], msgspec.Meta(description="The sources. One that never sent a hit is not listed.")
    ]
    policy: Annotated[
        Policy,
        msgspec.Meta(
            description="Today's policy. `all`: the hits of every source count. `beacon_only`: only hits of `beacon`."
            " `log_only`: only hits of `log` and `server`. `beacon_people_log_machines`: people from `beacon`; AI,"
            " bots and Markdown from `log` and `server`."
        ),
    ]
    warnings: Annotated[tuple[str, ...], msgspec.Meta(description="What the project's owner should check.")]
    overlap_days: Annotated[
        int, msgspec.Meta(description="UTC days on which beacons and logs both have views of people.")
    ] = 0
    unbeaconed: Annotated[
        int,
        msgspec.Meta(
            description="Views in logs that look like people and are not counted, because people count from beacons:"
            " scripts with the user agent of a browser, and people whose browser sent no beacon."
        ),
    ] = 0
    measured: MeasuredTimes = MeasuredTimes((), (), ())
