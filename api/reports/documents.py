"""The JSON of the reports but `coverage`. The reference shows the descriptions of the fields."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta
from msgspec import UnsetType as Unset

from api.http.operation import HasMore
from warehouse.report.measured import Extent

UNKNOWN = "null if no source counted them in this time."


class VisitorCounts(msgspec.Struct, frozen=True):
    """Visitors: distinct ones of each UTC day, added up. A count is null if no visitor was known."""

    human: Annotated[int | None, Meta(description="People.")]
    ai: Annotated[int | None, Meta(description="Sources of AI agents.")]
    total: Annotated[int | None, Meta(description="People or AI; a visitor that was both counts once.")]


class VisitorShares(msgspec.Struct, frozen=True):
    """Views whose visitor is known, in percent of all: views have a visitor if their source sent the address."""

    human: Annotated[float | None, Meta(description="Of the views by people; null without one.")]
    ai: Annotated[float | None, Meta(description="Of the views by AI agents; null without one.")]
    total: Annotated[float | None, Meta(description="Of the views by people or AI; null without one.")]


class Counts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Views by people, AI agents and other bots. A count is null if nothing was measured."""

    human: Annotated[int | None, Meta(description=f"Views by people; {UNKNOWN}")]
    ai: Annotated[int | None, Meta(description=f"Views by AI agents; {UNKNOWN}")]
    bot: Annotated[int | None, Meta(description=f"Views by other bots, which are not in `total`; {UNKNOWN}")]
    total: Annotated[int | None, Meta(description="`human` plus `ai`; null if both are unknown.")]
    visitors: VisitorCounts | Unset = UNSET
    visitors_known: VisitorShares | Unset = UNSET
    visits: Annotated[int | Unset | None, Meta(description="Visits of people; null if no visitor was known.")] = UNSET
    bounce_rate: Annotated[
        float | Unset | None,
        Meta(description="Visits of one view without an event, in percent of visits seen by the script; null if none."),
    ] = UNSET
    visit_duration: Annotated[
        int | Unset | None,
        Meta(description="Mean seconds of visits seen by the script, with the last page's visible time; null if none."),
    ] = UNSET
    views_per_visit: Annotated[
        float | Unset | None, Meta(description="Mean number of views of a visit; null if no visit is known.")
    ] = UNSET
    bytes: Annotated[
        int | Unset | None, Meta(description="Bytes of all requests of known size; null if there are none.")
    ] = UNSET
    bytes_known: Annotated[
        float | Unset | None, Meta(description="Requests of known size, in percent of all; null without requests.")
    ] = UNSET


class Measured(msgspec.Struct, frozen=True):
    """How much of the time range was measured, by the sources that the filters select: `all`, `part` or `none`."""

    human: Annotated[Extent, Meta(description="Whether a source counted people.")]
    ai: Annotated[Extent, Meta(description="Whether a source counted AI agents.")]
    bot: Annotated[Extent, Meta(description="Whether a source counted other bots.")]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Views of all paths in the time range."""

    human: Annotated[int, Meta(description="Views by people.")]
    ai: Annotated[int, Meta(description="Views by AI agents.")]
    total: Annotated[int, Meta(description="`human` plus `ai`.")]


class PathViews(Totals, frozen=True):
    """Views of one path."""

    path: Annotated[str, Meta(description="The page's path.")]


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Views in a time range: the totals, and one page of the paths."""

    totals: Annotated[Totals, Meta(description="Totals of the whole time range, on every page.")]
    views: Annotated[list[PathViews], Meta(description="One page of the paths, most viewed first.")]
    has_more: HasMore
    measured: Measured


class VisitorTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Visitors of all paths in the time range."""

    human: Annotated[int, Meta(description="People: distinct visitors of each UTC day.")]
    ai: Annotated[int, Meta(description="Sources of AI agents: distinct visitors of each UTC day.")]
    total: Annotated[int, Meta(description="Visitors that were people or AI; one that was both counts once.")]


class PathVisitors(VisitorTotals, frozen=True):
    """Visitors of one path."""

    path: Annotated[str, Meta(description="The page's path.")]


class Visitors(msgspec.Struct, frozen=True, rename="camel"):
    """Visitors in a time range: the totals, and one page of the paths."""

    totals: Annotated[VisitorTotals, Meta(description="Totals of the whole time range, on every page.")]
    visitors: Annotated[list[PathVisitors], Meta(description="One page of the paths, most visited first.")]
    has_more: HasMore
    measured: Measured
    visitors_known: VisitorShares


class IntervalViews(Counts, frozen=True):
    """Views in one interval."""

    start: Annotated[str, Meta(description="First day of the interval; for an hour its time with the offset.")]


class Series(msgspec.Struct, frozen=True):
    """Views in each interval of a time range."""

    series: Annotated[list[IntervalViews], Meta(description="The intervals in order, also those without views.")]
    totals: Annotated[Counts, Meta(description="Totals of the whole time range.")]
    measured: Measured


class ValueViews(Counts, frozen=True):
    """Views with one value of the dimension."""

    value: Annotated[str | None, Meta(description="The value; null if it is unknown or does not apply.")]


class Breakdown(msgspec.Struct, frozen=True, rename="camel"):
    """Views in a time range by the values of a dimension: the totals, and one page of the values."""

    totals: Annotated[Counts, Meta(description="Totals of the whole time range, on every page.")]
    rows: Annotated[list[ValueViews], Meta(description="One page of the values, most viewed first.")]
    has_more: HasMore
    measured: Measured


class ErrorRow(msgspec.Struct, frozen=True, rename="camel"):
    """Requests of one path by one agent, answered with one status."""

    path: Annotated[str | None, Meta(description="The path; null for unnamed bots, HTTP libraries and spoofed agents.")]
    agent: Annotated[str | None, Meta(description="Name of the AI agent or bot; null for unnamed bots.")]
    traffic: Literal["ai", "bot"]
    status: Annotated[int, Meta(description="HTTP status of the responses.", ge=400, le=599)]
    requests: Annotated[int, Meta(description="Number of requests in the time range.")]
    first_seen: Annotated[datetime, Meta(description="Time of the first of these requests.")]
    last_seen: Annotated[datetime, Meta(description="Time of the last of these requests.")]


class PathErrors(msgspec.Struct, frozen=True, rename="camel"):
    """Requests of one path that were answered with an error."""

    path: Annotated[str | None, Meta(description="The path; null for all paths that are not stored.")]
    requests: Annotated[int, Meta(description="Number of requests in the time range.")]
    agents: Annotated[int, Meta(description="Number of AI agents and bots with a name.")]
    statuses: Annotated[tuple[int, ...], Meta(description="HTTP statuses of the responses, in order.")]
    first_seen: Annotated[datetime, Meta(description="Time of the first of these requests.")]
    last_seen: Annotated[datetime, Meta(description="Time of the last of these requests.")]


class Errors(msgspec.Struct, frozen=True, rename="camel"):
    """One page of the errors in a time range."""

    errors: Annotated[list[ErrorRow], Meta(description="One page of the errors, most requests first.")]
    has_more: HasMore
    paths: Annotated[
        list[PathErrors] | Unset, Meta(description="With `by=path`, one page of the paths; `errors` is then empty.")
    ] = UNSET


class RequestTotals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All requests in the time range."""

    requests: Annotated[int, Meta(description="Number of requests.")]
    bytes: Annotated[int | None, Meta(description="Bytes of the `sized` requests; null if none has a size.")]
    sized: Annotated[int, Meta(description="Number of requests whose size is known.")]
    bytes_known: Annotated[float | None, Meta(description="Share of `sized` in `requests`, in percent.")]
    timed: Annotated[int, Meta(description="Number of requests whose time is known.")]
    times_known: Annotated[float | None, Meta(description="Share of `timed` in `requests`, in percent.")]
    p50_ms: Annotated[int | None, Meta(description="Half of the `timed` requests took less, in milliseconds.")]
    p95_ms: Annotated[int | None, Meta(description="95 % of the `timed` requests took less, in milliseconds.")]
    cached: Annotated[int, Meta(description="Number of requests with the state of a cache.")]
    cache_known: Annotated[float | None, Meta(description="Share of `cached` in `requests`, in percent.")]
    cache_hits: Annotated[int, Meta(description="Number of requests that this cache answered.")]
    refused: Annotated[int, Meta(description="Number of requests answered with 401, 402, 403, 429, 451 or 503.")]
    after_refusal: Annotated[
        int | None, Meta(description="At least so many after a reader's first refusal; else null.")
    ]
    robots_read: Annotated[datetime | None, Meta(description="Time of the last request that got `/robots.txt`.")]
    last_seen: Annotated[datetime | None, Meta(description="Time of the last request; null only in totals.")]


class Requests(RequestTotals, frozen=True):
    """Requests with one value of a dimension."""

    value: Annotated[str | None, Meta(description="The value; null for people, and for agents without a name.")]


class Cost(msgspec.Struct, frozen=True, rename="camel"):
    """Requests in a time range: the totals, and one page of the values of a dimension."""

    totals: Annotated[RequestTotals, Meta(description="Totals of the whole time range, on every page.")]
    rows: Annotated[list[Requests], Meta(description="One page of the values, most requests first.")]
    has_more: HasMore


class GoalRow(msgspec.Struct, frozen=True, rename="camel"):
    """A goal of people or AI. A number that was not measured is null."""

    goal: Annotated[str, Meta(description="Name of the goal.")]
    value: Annotated[str | None, Meta(description="Value of the dimension `by`; null where unknown, and without `by`.")]
    traffic: Annotated[Literal["human", "ai"], Meta(description="Who reached the goal.")]
    conversions: Annotated[int | None, Meta(description="How often the goal was reached.")]
    goal_visitors: Annotated[int | None, Meta(description="Visitors who reached the goal, days added.")]
    visitors: Annotated[int | None, Meta(description="All visitors, days added.")]
    conversion_rate: Annotated[
        float | None, Meta(description="Share of `goalVisitors` in `visitors`, in per cent; null without a visitor.")
    ]


class Goals(msgspec.Struct, frozen=True, rename="camel"):
    """One page of the goals of a project."""

    goals: Annotated[list[GoalRow], Meta(description="Goals by name, people before AI.")]
    has_more: HasMore
    measured: Measured
    """When visitors were known."""


class EventRow(msgspec.Struct, frozen=True, rename="camel"):
    """An event, or a value of it, of one kind of readers."""

    name: Annotated[str, Meta(description="Name of the event.")]
    value: Annotated[str | None, Meta(description="Value of `by`; null where there is none, and without `by`.")]
    traffic: Annotated[Literal["human", "ai", "bot"], Meta(description="Who did it. Bots need `traffic=bot`.")]
    events: Annotated[int, Meta(description="Number of events.")]
    visitors: Annotated[int | None, Meta(description="Visitors with the event, days added; null if none is known.")]


class Events(msgspec.Struct, frozen=True, rename="camel"):
    """One page of the events of a project."""

    events: Annotated[list[EventRow], Meta(description="Most events first.")]
    has_more: HasMore
