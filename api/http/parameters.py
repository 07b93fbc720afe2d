"""Query parameters, checked: every fault of a request is told at once."""

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
"""Of jobs and of entries of a log, which the database skips."""
_INSTANT = re.compile(
    r"""
      (\d{4}-\d\d-\d\d | \d{4}-W\d\d-\d) (T\d\d(:\d\d(:\d\d([.,]\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?
    | (\d{8}         | \d{4}W\d{3}    ) (T\d\d( \d\d( \d\d([.,]\d{1,9})?)?)?(Z|[+-]\d\d(:?\d\d)?)?)?
    | \d{4}-\d\d-\d\d[ ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""ISO 8601 in its extended and its basic form, and RFC 3339 with its space. `datetime.fromisoformat` alone takes any
character for the T, so that 2026-10-01-02:00 is 02:00 UTC. After a space the seconds are asked for: 2026-10-01 02:00 is
also what 2026-10-01+02:00 becomes on its way."""
_NUMBER = re.compile(r"[0-9]+")
_NUMBER_DIGITS_MAX = 18


class ViewsQuery(NamedTuple):
    """What a views export asks for. `start` and `end` are aware UTC; None is "to now"."""

    start: datetime
    end: datetime | None
    limit: int
    offset: int


def single(request: Request, known: Iterable[str]) -> dict[str, str]:
    """The query's parameters, each given once and known.

    Raises:
        Problem: `invalid-parameter`, naming each that is not.
    """
    given, faults = _given(request, tuple(known))
    _raise(faults)
    return given


def views_query(request: Request) -> ViewsQuery:
    """The parameters of the views export.

    Raises:
        Problem: `invalid-parameter`, naming each that is at fault.
    """
    given, faults = _given(request, ("dateFrom", "dateTo", "limit", "offset"))
    start = _instant(given, "dateFrom", faults)
    end = _instant(given, "dateTo", faults)
    limit = _whole(given, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX, faults)
    offset = _whole(given, "offset", 0, 0, None, faults)
    if start and end and start > end:
        faults.append(Fault("is after dateTo", parameter="dateFrom"))
    _raise(faults)
    return ViewsQuery(start or FIRST, end, limit, offset)


class JobsQuery(NamedTuple):
    """Which page of a project's jobs is asked for; of one state, if one is given."""

    status: Status | None
    limit: int
    offset: int


def jobs_query(request: Request) -> JobsQuery:
    """The parameters of the list of jobs.

    Raises:
        Problem: `invalid-parameter`, naming each that is at fault.
    """
    given, faults = _given(request, ("status", "limit", "offset"))
    limit = _whole(given, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX, faults)
    offset = _whole(given, "offset", 0, 0, OFFSET_MAX, faults)
    status = given.get("status")
    if status is not None and status not in tuple(Status):
        faults.append(Fault(f"must be one of {', '.join(Status)}", parameter="status"))
    _raise(faults)
    return JobsQuery(Status(status) if status else None, limit, offset)


class LogQuery(NamedTuple):
    """Which page of a job's log is asked for."""

    limit: int
    offset: int


def log_query(request: Request) -> LogQuery:
    """Return the parameters of a job's log.

    Raises:
        Problem: `invalid-parameter`, naming each that is at fault.
    """
    given, faults = _given(request, ("limit", "offset"))
    limit = _whole(given, "limit", PAGE_ENTRIES, 1, PAGE_ENTRIES, faults)
    offset = _whole(given, "offset", 0, 0, OFFSET_MAX, faults)
    _raise(faults)
    return LogQuery(limit, offset)


def _given(request: Request, known: tuple[str, ...]) -> tuple[dict[str, str], list[Fault]]:
    pairs = request.query_params.multi_items()
    if len(pairs) > PARAMETERS_MAX:
        raise Problem("invalid-parameter", f"the query has {len(pairs)} parameters; at most {PARAMETERS_MAX} are taken")
    times = Counter(name for name, _ in pairs)
    faults = [Fault("is given more than once", parameter=name[:100]) for name, given in times.items() if given > 1]
    faults += [_unknown(name, known) for name in times if name not in known]
    return dict(pairs), faults


def _unknown(name: str, known: tuple[str, ...]) -> Fault:
    close = difflib.get_close_matches(name[:100].lower(), [each.lower() for each in known], n=1)
    meant = next((each for each in known if close and each.lower() == close[0]), None)
    hint = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
    return Fault(f"is no parameter of this operation; {hint}", parameter=name[:100])


def _raise(faults: list[Fault]) -> None:
    if faults:
        told = "; ".join(f"{fault.parameter} {fault.detail}" for fault in faults)
        raise Problem("invalid-parameter", told, faults)


def _whole(given: dict[str, str], name: str, default: int, least: int, most: int | None, faults: list[Fault]) -> int:
    text = given.get(name, str(default))
    if _NUMBER.fullmatch(text):
        # Past so many digits the exact number is of no matter: it is over every limit, and past every row.
        number = int(text) if len(text) <= _NUMBER_DIGITS_MAX else 10**_NUMBER_DIGITS_MAX
        if number >= least and (most is None or number <= most):
            return number
    bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"
    faults.append(Fault(f"must be a whole number {bounds}, not {text[:40]!r}", parameter=name))
    return default


def _instant(given: dict[str, str], name: str, faults: list[Fault]) -> datetime | None:
    """A date is its midnight; a time without a zone is UTC."""
    text = given.get(name)
    if text is None:
        return None
    try:
        return min(_of_iso(text), LAST)
    except (ValueError, OverflowError):
        zone = "; write the + of a zone as %2B" if re.search(r"\d \d\d:?\d\d$", text) else ""
        detail = f"must be a date (2026-09-01) or an ISO 8601 time (2026-09-01T12:00:00Z), not {text[:40]!r}{zone}"
        faults.append(Fault(detail, parameter=name))
        return None


def _of_iso(text: str) -> datetime:
    """Raises ValueError, and OverflowError for a time that is out of its range in UTC."""
    if _INSTANT.fullmatch(text) is None:
        raise ValueError(text)
    read = datetime.fromisoformat(text.upper())
    return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
