"""Query parameters. An error names every invalid parameter of the request."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from starlette.requests import Request

from agent.jobs.job import Status
from agent.jobs.journal import PAGE_ENTRIES
from api.http.problems import Fault, Problem
from warehouse.query.time_range import FIRST, LAST

PARAMETERS_MAX = 20
LIMIT_DEFAULT, LIMIT_MAX = 50, 250
OFFSET_MAX = 2**31
"""Maximum offset of jobs and of log entries, which the database has to skip."""
_TIME = re.compile(
    r"""
      (\d{4}-\d\d-\d\d | \d{4}-W\d\d-\d) (T\d\d(:\d\d(:\d\d([.,]\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?
    | (\d{8}         | \d{4}W\d{3}    ) (T\d\d( \d\d( \d\d([.,]\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?
    | \d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""ISO 8601 in its extended and its basic form, and RFC 3339 with a space. `datetime.fromisoformat` accepts any
character in place of the T: it would read 2026-10-01-02:00 as 02:00 UTC. After a space the seconds are required:
2026-10-01+02:00 in a URL is decoded to 2026-10-01 02:00."""
_NUMBER = re.compile(r"[0-9]+")
_NUMBER_DIGITS_MAX = 18


class ViewsQuery(NamedTuple):
    """Parameters of the export of page views. `start` and `end` are aware datetimes in UTC; `end` is None for now."""

    start: datetime
    end: datetime | None
    limit: int
    offset: int


def single(request: Request, known: Iterable[str]) -> dict[str, str]:
    """Return the parameters of the query.

    Raises:
        Problem: `invalid-parameter`, for unknown and repeated parameters.
    """
    values, faults = _read(request, tuple(known))
    _raise(faults)
    return values


def views_query(request: Request) -> ViewsQuery:
    """Return the parameters of the export of page views.

    Raises:
        Problem: `invalid-parameter`.
    """
    values, faults = _read(request, ("dateFrom", "dateTo", "limit", "offset"))
    start = _time(values, "dateFrom", faults)
    end = _time(values, "dateTo", faults)
    limit = _integer(values, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX, faults)
    offset = _integer(values, "offset", 0, 0, None, faults)
    if start and end and start > end:
        faults.append(Fault("is after dateTo", parameter="dateFrom"))
    _raise(faults)
    return ViewsQuery(start or FIRST, end, limit, offset)


class JobsQuery(NamedTuple):
    """Parameters of the list of jobs. `status` is None for any status."""

    status: Status | None
    limit: int
    offset: int


def jobs_query(request: Request) -> JobsQuery:
    """Return the parameters of the list of jobs.

    Raises:
        Problem: `invalid-parameter`.
    """
    values, faults = _read(request, ("status", "limit", "offset"))
    limit = _integer(values, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX, faults)
    offset = _integer(values, "offset", 0, 0, OFFSET_MAX, faults)
    status = values.get("status")
    if status is not None and status not in tuple(Status):
        faults.append(Fault(f"must be one of {', '.join(Status)}", parameter="status"))
    _raise(faults)
    return JobsQuery(Status(status) if status else None, limit, offset)


class LogQuery(NamedTuple):
    """Parameters of a job's log."""

    limit: int
    offset: int


def log_query(request: Request) -> LogQuery:
    """Return the parameters of a job's log.

    Raises:
        Problem: `invalid-parameter`.
    """
    values, faults = _read(request, ("limit", "offset"))
    limit = _integer(values, "limit", PAGE_ENTRIES, 1, PAGE_ENTRIES, faults)
    offset = _integer(values, "offset", 0, 0, OFFSET_MAX, faults)
    _raise(faults)
    return LogQuery(limit, offset)


def _read(request: Request, known: tuple[str, ...]) -> tuple[dict[str, str], list[Fault]]:
    """Return the values by name, and the faults of the names."""
    pairs = request.query_params.multi_items()
    if len(pairs) > PARAMETERS_MAX:
        raise Problem(
            "invalid-parameter", f"the query has {len(pairs)} parameters; at most {PARAMETERS_MAX} are accepted"
        )
    times = Counter(name for name, _ in pairs)
    faults = [Fault("is repeated", parameter=name[:100]) for name, count in times.items() if count > 1]
    faults += [_unknown(name, known) for name in times if name not in known]
    return dict(pairs), faults


def _unknown(name: str, known: tuple[str, ...]) -> Fault:
    close = difflib.get_close_matches(name[:100].lower(), [each.lower() for each in known], n=1)
    similar = next((each for each in known if close and each.lower() == close[0]), None)
    hint = f"did you mean {similar}?" if similar else f"its parameters are {', '.join(known)}"
    return Fault(f"is not a parameter of this operation; {hint}", parameter=name[:100])


def _raise(faults: list[Fault]) -> None:
    if faults:
        detail = "; ".join(f"{fault.parameter} {fault.detail}" for fault in faults)
        raise Problem("invalid-parameter", detail, faults)


def _integer(values: dict[str, str], name: str, default: int, least: int, most: int | None, faults: list[Fault]) -> int:
    """Return the integer, or append a fault and return the default."""
    text = values.get(name, str(default))
    if _NUMBER.fullmatch(text):
        # A longer number is beyond every limit and every offset; its exact value does not matter.
        number = int(text) if len(text) <= _NUMBER_DIGITS_MAX else 10**_NUMBER_DIGITS_MAX
        if number >= least and (most is None or number <= most):
            return number
    bounds = f"from {least} to {most}" if most is not None else f"of {least} or more"
    faults.append(Fault(f"must be an integer {bounds}, not {text[:40]!r}", parameter=name))
    return default


def _time(values: dict[str, str], name: str, faults: list[Fault]) -> datetime | None:
    """Return the time in UTC: midnight for a date. Append a fault if the text is invalid."""
    text = values.get(name)
    if text is None:
        return None
    try:
        return min(_from_iso(text), LAST)
    except (ValueError, OverflowError):
        zone = "; encode the + of a zone as %2B" if re.search(r"\d \d\d:?\d\d$", text) else ""
        detail = f"must be a date (2026-09-01) or an ISO 8601 time (2026-09-01T12:00:00Z), not {text[:40]!r}{zone}"
        faults.append(Fault(detail, parameter=name))
        return None


def _from_iso(text: str) -> datetime:
    """Return the time in UTC; without a zone it is UTC already.

    Raises:
        ValueError: the text is invalid.
        OverflowError: the time is out of range in UTC.
    """
    if _TIME.fullmatch(text) is None:
        raise ValueError(text)
    time = datetime.fromisoformat(text.upper())
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
