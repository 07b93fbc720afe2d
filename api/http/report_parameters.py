"""Query parameters of the reports: the time range, filters, moment, page, dimension and interval."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from starlette.requests import Request

from api.http.parameters import LIMIT_DEFAULT, LIMIT_MAX, Values, shown
from ingest.classification import agents
from ingest.errors import InvalidField
from ingest.hits.url import PATH_CHARACTERS_MAX, UNSTORABLE, normalize_filter
from warehouse.columns.dimensions import BREAKDOWNS, FILTERS, dimension
from warehouse.columns.filters import Filters
from warehouse.errors import InvalidMoment
from warehouse.query.moment import Moment
from warehouse.query.time_range import FIRST
from warehouse.report.audience.errors import FIRST_DAY, LAST_DAY, ErrorQuery
from warehouse.report.results import Query
from warehouse.report.time_buckets import INTERVALS

CHOICES = {name: choices for name in FILTERS if (choices := dimension(name).choices)}
"""Values of the filters that are closed sets."""
ERROR_TRAFFIC = ("ai", "bot")
ERROR_STATUSES = range(400, 600)
"""Values of `traffic` and `status` in the list of errors."""
ERROR_FILTERS = ("path", "traffic", "agent", "operator", "purpose", "status")
"""Filters of the list of errors: the table of errors has no other dimension."""
TEXT_CHARACTERS_MAX = 256
"""Maximum length of the value of any other filter but `path`, in characters."""
INTERVAL_DEFAULT, TIMEZONE_DEFAULT = "day", "UTC"
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_RANGE = ("dateFrom", "dateTo")
_PAGE = ("limit", "offset")
_MOMENT = ("asOf",)


@dataclass(frozen=True, slots=True)
class ReportSelection:
    """Selection of the hits that a report counts, and the moment of the count.

    `start` and `end` are in UTC. `end` is None for a range that ends now, and `as_of` is None for the newest moment.
    """

    start: datetime
    end: datetime | None
    filters: Filters
    as_of: Moment | None

    def query(self, project: str, moment: Moment) -> Query:
        """Return the query of a report on one project, at the moment of a snapshot.

        A range without an end ends at the time of the moment, so that all pages have the same range.
        """
        return Query(project, self.start, self.end, self.filters, _EPOCH + moment.taken_us * _MICROSECOND)


@dataclass(frozen=True, slots=True)
class ViewsQuery:
    """Parameters of the export of page views."""

    selection: ReportSelection
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class BreakdownQuery:
    """Parameters of a breakdown. `by` is one of BREAKDOWNS."""

    selection: ReportSelection
    by: str
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """Parameters of a series. `interval` is one of INTERVALS."""

    selection: ReportSelection
    interval: str
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class ErrorsPage:
    """Parameters of the list of errors. `as_of` is None for the newest moment."""

    query: ErrorQuery
    limit: int
    offset: int
    as_of: Moment | None


def views_query(request: Request) -> ViewsQuery:
    """Return the parameters of the export of page views.

    Raises:
        Problem: `invalid-parameter`; the other functions of this module raise it, too.
    """
    values = Values(request, (*_RANGE, *_PAGE, *FILTERS, *_MOMENT))
    query = ViewsQuery(_selection(values), *_page(values))
    values.require_valid()
    return query


def breakdown_query(request: Request) -> BreakdownQuery:
    """Return the parameters of a breakdown."""
    values = Values(request, ("by", *_RANGE, *_PAGE, *FILTERS, *_MOMENT))
    by = values.choice("by", BREAKDOWNS)
    if "by" not in values.texts:
        values.add_fault("by", f"is required: one of {', '.join(BREAKDOWNS)}")
    query = BreakdownQuery(_selection(values), by or "", *_page(values))
    values.require_valid()
    return query


def series_query(request: Request) -> SeriesQuery:
    """Return the parameters of a series."""
    values = Values(request, ("interval", "timezone", *_RANGE, *FILTERS, *_MOMENT))
    interval = values.choice("interval", INTERVALS) or INTERVAL_DEFAULT
    query = SeriesQuery(_selection(values), interval, _zone(values))
    values.require_valid()
    return query


def errors_page(request: Request, project: str) -> ErrorsPage:
    """Return the parameters of the list of errors."""
    values = Values(request, (*_RANGE, *_PAGE, *ERROR_FILTERS, *_MOMENT))
    first, end = _day(values, "dateFrom") or FIRST_DAY, _day(values, "dateTo") or LAST_DAY
    if first > end:
        values.add_fault("dateFrom", "is after dateTo")
    status = values.integer("status", 0, ERROR_STATUSES[0], ERROR_STATUSES[-1]) if "status" in values.texts else None
    traffic = values.choice("traffic", ERROR_TRAFFIC)
    query = ErrorQuery(project, first, end, _path(values), traffic, _text(values, "agent"), status, _agents(values))
    page = ErrorsPage(query, *_page(values), _moment(values))
    values.require_valid()
    return page


def _agents(values: Values) -> tuple[str, ...] | None:
    """Return the agents of the filters by operator and purpose; None without these filters."""
    return agents_of(_text(values, "operator"), values.choice("purpose", CHOICES["purpose"]))


def agents_of(operator: str | None, purpose: str | None) -> tuple[str, ...] | None:
    """Return the names of the AI agents of an operator and purpose; None for all, if both are None."""
    return None if operator is None and purpose is None else agents.names(operator, purpose)


def _day(values: Values, name: str) -> date | None:
    """Return a UTC day; errors are counted by day."""
    instant = values.time(name)
    if instant is not None and instant.time() != time():
        values.add_fault(name, "must be a date (2026-09-01), or midnight in UTC: errors are counted by day")
    return instant.date() if instant else None


def coverage_query(request: Request) -> Moment | None:
    """Return the moment of a request for the coverage; None for the newest."""
    values = Values(request, _MOMENT)
    moment = _moment(values)
    values.require_valid()
    return moment


def _selection(values: Values) -> ReportSelection:
    start, end = values.time("dateFrom"), values.time("dateTo")
    if start and end and start > end:
        values.add_fault("dateFrom", "is after dateTo")
    return ReportSelection(start or FIRST, end, filters(values), _moment(values))


def filters(values: Values) -> Filters:
    """Return the filters of a report, and record the faults of their parameters in `values`."""
    names = (name for name in FILTERS if name != "path")
    chosen = {name: values.choice(name, CHOICES[name]) if name in CHOICES else _text(values, name) for name in names}
    return Filters().but(**chosen, path=_path(values))


def _page(values: Values) -> tuple[int, int]:
    """Return the limit and the offset."""
    limit = values.integer("limit", LIMIT_DEFAULT, 1, LIMIT_MAX)
    return limit, values.integer("offset", 0, 0, None)


def _path(values: Values) -> str | None:
    """Return the normalised path, prefix or part of a path: see `normalize_filter`."""
    text = values.texts.get("path")
    if text is None:
        return None
    try:
        return normalize_filter(text)
    except InvalidField:
        forms = "a path (/docs/start), a prefix (/docs/*) or a part (*install*)"
        expected = f"{forms} of at most {PATH_CHARACTERS_MAX} characters"
        values.add_fault("path", f"must be {expected}, not {shown(text)}")
        return None


def _text(values: Values, name: str) -> str | None:
    """Return the value of a filter that is not a closed set."""
    text = values.texts.get(name)
    if text is not None and (not 1 <= len(text) <= TEXT_CHARACTERS_MAX or UNSTORABLE.search(text)):
        expected = f"a text of 1 to {TEXT_CHARACTERS_MAX} characters without control characters"
        values.add_fault(name, f"must be {expected}, not {shown(text)}")
        return None
    return text


def _moment(values: Values) -> Moment | None:
    text = values.texts.get("asOf")
    try:
        return None if text is None else Moment.parse(text)
    except InvalidMoment:
        values.add_fault("asOf", f"must be the X-As-Of of an earlier response, not {shown(text or '')}")
        return None


def _zone(values: Values) -> ZoneInfo:
    name = values.texts.get("timezone", TIMEZONE_DEFAULT)
    if name != TIMEZONE_DEFAULT and name not in timezones():
        values.add_fault("timezone", f"must be an IANA time zone (Europe/Berlin), not {shown(name)}")
        name = TIMEZONE_DEFAULT
    return ZoneInfo(name)


@cache
def timezones() -> frozenset[str]:
    """Return the names of all IANA time zones of the system. The first call takes 0.1 s.

    Debian also has the zone `localtime`. It is left out, because `localtime` may be a different zone on each node.
    """
    return frozenset(available_timezones() - {"localtime"})
