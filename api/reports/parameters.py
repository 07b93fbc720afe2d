"""Parameters of the reports, each parsed by its JSON schema, and the selection that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from starlette.requests import Request

from api.http.cors import AS_OF
from api.http.operation import IF_NONE_MATCH, LIMIT_DEFAULT, Json, Parameter, paging
from api.http.parameters import Values, shown
from api.reports.metrics import BYTES, METRICS
from ingest.classification import agents
from ingest.errors import InvalidField
from ingest.hits.url import PATH_CHARACTERS_MAX, UNSTORABLE, normalize_filter
from warehouse.columns import dimensions
from warehouse.columns.dimensions import BREAKDOWNS, OF_VISITS, PAGES, dimension
from warehouse.columns.filters import Filters
from warehouse.columns.kinds import KINDS
from warehouse.columns.sources import SEND_STATUS
from warehouse.errors import InvalidMoment
from warehouse.query.moment import Moment
from warehouse.query.time_range import FIRST
from warehouse.report.audience.requests import BY, LAST_DAY, RequestQuery
from warehouse.report.results import Order, Query
from warehouse.report.time_buckets import INTERVALS

TEXT_CHARACTERS_MAX = 256
"""Maximum length of the value of any filter but `path` that is not a closed set, in characters."""
ERROR_STATUSES = frozenset(map(str, range(400, 600)))
_TEXT: Json = {"minLength": 1, "maxLength": TEXT_CHARACTERS_MAX}
_TIME: Json = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
_DAY: Json = {"format": "date"}
UTC_ZONE, ALL_VIEWS = ZoneInfo("UTC"), Filters()
_ASKED_BY = ("traffic", "agent", "operator", "status", "source")
"""Filters of views that requests have, too."""
_FIELDS = {"asOf": "as_of", "timezone": "zone"}
"""Fields of a selection that have another name than their parameter."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def _filter(name: str) -> Parameter:
    chosen = dimension(name)
    if name in PAGES:
        of = "this path, the paths" if name == "path" else f"visits with this {chosen.title.lower()}, the ones"
        description = f"Only {of} with a prefix (`/docs/*`), or with a part (`*install*`)."
        return Parameter(name, description, {"minLength": 1}, example=chosen.example)
    values: Json = {"enum": list(chosen.choices)} if chosen.choices else _TEXT
    return Parameter(name, f"Only this value: {chosen.meaning}.", values, example=chosen.example)


FILTERS = {name: _filter(name) for name in dimensions.FILTERS}
AS_OF_PARAMETER = Parameter(
    "asOf",
    f"The `{AS_OF}` of an earlier response: count the hits of that moment.",
    {"pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z(_[0-9]{1,18}){2,3}$"},
)
MOMENT = (AS_OF_PARAMETER, IF_NONE_MATCH)
COUNTED = (
    Parameter("dateFrom", "First day, or ISO 8601 time, of the range.", _TIME, example="2026-09-01"),
    Parameter("dateTo", "Day or time at which the range ends, exclusive.", _TIME, example="2026-10-01"),
    *FILTERS.values(),
    *MOMENT,
)
"""Parameters of the reports of page views."""
DIMENSION = Parameter("by", "The dimension.", {"enum": [*BREAKDOWNS, *OF_VISITS]}, example="agent", is_required=True)
BY_OPTIONAL = replace(DIMENSION, description="Count by this dimension.", example="channel", is_required=False)
METRICS_PARAMETER = Parameter(
    "metrics",
    f"What a row has, separated by commas: {', '.join(f'`{each}`' for each in METRICS)}. Views are always in it. The"
    " default is `views`; for entry and exit pages it is every metric but `bytes`.",
    {"pattern": f"^({'|'.join(METRICS)})(,({'|'.join(METRICS)}))*$"},
    example="views,visitors,visits",
)
BUCKETS = (
    Parameter("interval", "Length of an interval.", {"enum": list(INTERVALS), "default": "day"}),
    Parameter("timezone", "IANA time zone of the intervals.", {"default": "UTC"}, example="Europe/Berlin"),
)
ERROR_FILTERS = {
    **{name: FILTERS[name] for name in ("path", "agent", "operator", "purpose")},
    "traffic": Parameter("traffic", "Only AI agents or other bots.", {"enum": ["ai", "bot"]}),
    "status": Parameter("status", "Only this HTTP status.", {"type": "integer", "minimum": 400, "maximum": 599}),
}
"""Filters of the list of errors: the table of errors has no other dimension."""
STATUS_OF_REQUESTS = Parameter("status", "Only this HTTP status.", {"type": "integer", "minimum": 100, "maximum": 999})
"""The filter by the status of requests, whose column is an integer. The same filter of views is a text."""
ERRORS = (
    Parameter("dateFrom", "First UTC day of the range.", _DAY, example="2026-09-01"),
    Parameter("dateTo", "UTC day before which the range ends.", _DAY, example="2026-10-01"),
    Parameter("by", "List the paths, each with all of its agents and statuses.", {"enum": ["path"]}),
    *ERROR_FILTERS.values(),
    *paging("Errors"),
    *MOMENT,
)
COST = (
    *ERRORS[:2],
    Parameter("by", "The dimension.", {"enum": list(BY), "default": BY[0]}),
    FILTERS["traffic"],
    *(FILTERS[name] for name in ("agent", "operator")),
    Parameter("source", "Only requests of this source.", {"enum": list(SEND_STATUS[::-1])}),
    Parameter("kind", "Only requests of this kind.", {"enum": list(KINDS)}),
    STATUS_OF_REQUESTS,
    *paging("Values"),
    *MOMENT,
)
EVENTS = (
    *COUNTED[:2],
    Parameter("name", "Only this event.", _TEXT, example="Signup"),
    Parameter("by", "Count by this dimension, or else by the property of this name.", _TEXT, example="plan"),
    *FILTERS.values(),
    *paging("Rows"),
    *MOMENT,
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that a report has: the project, the range in UTC, the filters, and what only some reports have.

    `end` is None for a range that ends now, and `as_of` is None for the newest moment.
    """

    project: str
    start: datetime = FIRST
    end: datetime | None = None
    filters: Filters = ALL_VIEWS
    as_of: Moment | None = None
    limit: int = LIMIT_DEFAULT
    offset: int = 0
    order: Order = "total"
    by: str = ""
    kind: str | None = None
    name: str | None = None
    metrics: tuple[str, ...] | None = None
    interval: str = "day"
    zone: ZoneInfo = UTC_ZONE

    def query(self, moment: Moment) -> Query:
        """Return the query at the moment of a snapshot.

        A range without an end ends at the time of the moment, so that all pages have the same range.
        """
        return Query(self.project, self.start, self.end, self.filters, _EPOCH + moment.taken_us * _MICROSECOND)

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the metrics beside the views."""
        of_visits = METRICS.keys() - {BYTES} if self.by in OF_VISITS else ()
        return tuple(each for each in METRICS if each in (self.metrics or of_visits) and METRICS[each])

    @property
    def has_visitors(self) -> bool:
        return any(each != BYTES for each in self.shown)

    @property
    def requests(self) -> RequestQuery:
        """Return the query of all requests, which are counted by UTC day."""
        return self._of_days({"kind": self.kind, **{name: self.filters[name] for name in _ASKED_BY}})

    @property
    def errors(self) -> RequestQuery:
        """Return the query of the errors, which are counted by UTC day."""
        chosen = self.filters
        agents = agents_of(chosen["operator"], chosen["purpose"])
        named = {name: chosen[name] for name in ("traffic", "agent", "status")}
        return self._of_days({"path": chosen.path, "agents": agents, **named})

    def _of_days(self, filters: Mapping[str, Any]) -> RequestQuery:
        chosen = {name: value for name, value in filters.items() if value is not None}
        return RequestQuery(self.project, self.start.date(), self.end.date() if self.end else LAST_DAY, chosen)


def select(request: Request, project: str, parameters: Sequence[Parameter]) -> Selection:
    """Return the selection of a request. Raises Problem `invalid-parameter`, with every fault."""
    known = {each.name: each for each in parameters if each.place == "query"}
    values = Values(request, tuple(known))
    if has_bytes := BYTES in values.texts.get("metrics", "").split(","):
        known["status"] = STATUS_OF_REQUESTS
    parsed = {name: _value(values, each) for name, each in known.items()}
    start, end = parsed.pop("dateFrom", None), parsed.pop("dateTo", None)
    if start and end and start > end:
        values.add_fault("dateFrom", "is after dateTo")
    chosen = {name: parsed.pop(name) for name in FILTERS if name in parsed}
    if has_bytes:
        _require_of_requests(values, start, end)
    values.require_valid()
    fields = {_FIELDS.get(name, name): value for name, value in parsed.items()}
    return Selection(project, start or FIRST, end, Filters(**chosen), **fields)


def _require_of_requests(values: Values, *times: datetime | None) -> None:
    """Add a fault for each parameter with which bytes cannot be counted: requests have few columns, and UTC days."""
    limits = {"by": [each for each in BREAKDOWNS if each in BY], "interval": INTERVALS[1:], "timezone": ["UTC"]}
    for name, text in values.texts.items():
        if name in FILTERS and name not in _ASKED_BY:
            works = f"only the filters {', '.join(_ASKED_BY)} work"
            values.add_fault("metrics", f"has bytes, with which {works}, not {name}")
        elif text not in limits.get(name, [text]):
            can_be = f"{name} can be {', '.join(limits[name])}"
            values.add_fault("metrics", f"has bytes, with which {can_be}, not {shown(text)}")
    if any(each and each.time() != time() for each in times):
        values.add_fault("metrics", "has bytes, which are counted by UTC day: dateFrom and dateTo must be dates")


def filters(values: Values) -> Filters:
    """Return the filters of a page, and record the faults of their parameters in `values`."""
    return Filters(**{name: _value(values, each) for name, each in FILTERS.items()})


def agents_of(operator: str | None, purpose: str | None) -> tuple[str, ...] | None:
    """Return the names of the AI agents of an operator and purpose; None for all, if both are None."""
    return None if operator is None and purpose is None else agents.names(operator, purpose)


def _value(values: Values, parameter: Parameter) -> Any:
    """Return the value of a parameter by its schema, its default, or None. A fault is recorded in `values`."""
    name, schema = parameter.name, parameter.schema
    text = values.texts.get(name)
    if text is None and parameter.is_required:
        values.add_fault(name, f"is required: one of {', '.join(schema['enum'])}")
    if name == "timezone":
        return _zone(values, "UTC" if text is None else text)
    if text is None:
        return schema.get("default")
    if "enum" in schema or schema.get("type") == "integer":
        value = values.parsed(parameter)
        return str(value) if name in FILTERS and isinstance(value, int) else value
    if schema in (_TIME, _DAY):
        return _instant(values, name, is_day=schema is _DAY)
    return {**dict.fromkeys(PAGES, _path), "asOf": _moment, "metrics": _metrics}.get(name, _text)(values, name, text)


def _instant(values: Values, name: str, *, is_day: bool) -> datetime | None:
    instant = values.time(name)
    if is_day and instant is not None and instant.time() != time():
        values.add_fault(name, "must be a date (2026-09-01), or midnight in UTC: these are counted by day")
    return instant


def _path(values: Values, name: str, text: str) -> str | None:
    """Return the normalised path, prefix or part of a path: see `normalize_filter`."""
    try:
        return normalize_filter(text)
    except InvalidField:
        forms = "a path (/docs/start), a prefix (/docs/*) or a part (*install*)"
        values.add_fault(name, f"must be {forms} of at most {PATH_CHARACTERS_MAX} characters, not {shown(text)}")
        return None


def _metrics(values: Values, name: str, text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    unknown = next((each for each in chosen if each not in METRICS), None)
    if unknown is not None:
        values.add_fault(name, f"must be of {', '.join(METRICS)}, with a comma between two, not {shown(unknown)}")
    return chosen


def _text(values: Values, name: str, text: str) -> str | None:
    """Return the value of a filter that is not a closed set."""
    if 1 <= len(text) <= TEXT_CHARACTERS_MAX and not UNSTORABLE.search(text):
        return text
    expected = f"a text of 1 to {TEXT_CHARACTERS_MAX} characters without control characters"
    values.add_fault(name, f"must be {expected}, not {shown(text)}")
    return None


def _moment(values: Values, name: str, text: str) -> Moment | None:
    try:
        return Moment.parse(text)
    except InvalidMoment:
        values.add_fault(name, f"must be the X-As-Of of an earlier response, not {shown(text)}")
        return None


def _zone(values: Values, name: str) -> ZoneInfo:
    if name != "UTC" and name not in timezones():
        values.add_fault("timezone", f"must be an IANA time zone (Europe/Berlin), not {shown(name)}")
        return UTC_ZONE
    return ZoneInfo(name)


@cache
def timezones() -> frozenset[str]:
    """Return the names of all IANA time zones of the system. The first call takes 0.1 s.

    Debian also has the zone `localtime`. It is left out, because `localtime` may be a different zone on each node.
    """
    return frozenset(available_timezones() - {"localtime"})
