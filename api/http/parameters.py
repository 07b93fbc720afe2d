"""The parser of query parameters. An error names every invalid parameter of the request."""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from api.http.operation import Parameter
from api.http.problems import Fault, Problem
from warehouse.query.time_range import LAST

PARAMETERS_MAX = 32
"""Maximum number of parameters of a query: all filters at once, with a range, a page and the moment."""
SHOWN_CHARACTERS = 40
"""Number of characters of an invalid value that an error shows."""
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


class Values:
    """The parameters of a query, and the faults that were found in them until now.

    If a parameter is missing or invalid, the method for its value returns the default or None. An invalid parameter is
    added to the faults.
    """

    def __init__(self, request: Request, known: Sequence[str]) -> None:
        pairs = request.query_params.multi_items()
        if len(pairs) > PARAMETERS_MAX:
            raise Problem(
                "invalid-parameter", f"the query has {len(pairs)} parameters; at most {PARAMETERS_MAX} are accepted"
            )
        times = Counter(name for name, _ in pairs)
        self.texts = dict(pairs)
        self.faults = [Fault("is repeated", parameter=name[:100]) for name, count in times.items() if count > 1]
        self.faults += [_unknown(name, known) for name in times if name not in known]

    def add_fault(self, name: str, detail: str) -> None:
        self.faults.append(Fault(detail, parameter=name))

    def require_valid(self) -> None:
        """Raise a Problem `invalid-parameter` with all faults, if there are any."""
        if self.faults:
            detail = "; ".join(f"{fault.parameter} {fault.detail}" for fault in self.faults)
            raise Problem("invalid-parameter", detail, self.faults)

    def integer(self, name: str, default: int, least: int, most: int | None) -> int:
        text = self.texts.get(name, str(default))
        if _NUMBER.fullmatch(text):
            # A longer number exceeds every limit and is beyond the last row, so its exact value does not matter.
            number = int(text) if len(text) <= _NUMBER_DIGITS_MAX else 10**_NUMBER_DIGITS_MAX
            if number >= least and (most is None or number <= most):
                return number
        bounds = f"from {least} to {most}" if most is not None else f"of {least} or more"
        self.add_fault(name, f"must be an integer {bounds}, not {shown(text)}")
        return default

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        """Return a value of a closed set."""
        text = self.texts.get(name)
        if text is None or text in allowed:
            return text
        self.add_fault(name, f"must be one of {', '.join(allowed)}, not {shown(text)}")
        return None

    def parsed(self, parameter: Parameter) -> Any:
        """Return the value of a parameter by its schema: one of a closed set, an integer or a text; or its default."""
        name, schema = parameter.name, parameter.schema
        if "enum" in schema:
            return self.choice(name, schema["enum"]) or schema.get("default")
        if schema.get("type") == "integer":
            return self.integer(name, schema.get("default", 0), schema["minimum"], schema.get("maximum"))
        return self.texts.get(name, schema.get("default"))

    def time(self, name: str) -> datetime | None:
        """Return a time in UTC: midnight for a date."""
        text = self.texts.get(name)
        if text is None:
            return None
        try:
            return min(_from_iso(text), LAST)
        except (ValueError, OverflowError):
            zone = "; encode the + of a zone as %2B" if re.search(r"\d \d\d:?\d\d$", text) else ""
            expected = "a date (2026-09-01) or an ISO 8601 time (2026-09-01T12:00:00Z)"
            self.add_fault(name, f"must be {expected}, not {shown(text)}{zone}")
            return None


def shown(text: str) -> str:
    """Return the beginning of an invalid value, quoted for an error."""
    return repr(text[:SHOWN_CHARACTERS])


def single(request: Request, known: Sequence[str]) -> dict[str, str]:
    """Return the parameters of the query. Raises Problem `invalid-parameter`, for unknown and repeated parameters."""
    values = Values(request, known)
    values.require_valid()
    return values.texts


def parsed(request: Request, known: Sequence[Parameter]) -> list[Any]:
    """Return the parsed values of the parameters. Raises Problem `invalid-parameter`: see `Values.parsed`."""
    values = Values(request, [each.name for each in known])
    result = [values.parsed(each) for each in known]
    values.require_valid()
    return result


def _unknown(name: str, known: Sequence[str]) -> Fault:
    close = difflib.get_close_matches(name[:100].lower(), [each.lower() for each in known], n=1)
    similar = next((each for each in known if close and each.lower() == close[0]), None)
    hint = f"did you mean {similar}?" if similar else f"its parameters are {', '.join(known)}"
    return Fault(f"is not a parameter of this operation; {hint}", parameter=name[:100])


def _from_iso(text: str) -> datetime:
    """Return the time in UTC, the default zone. Raises ValueError, or OverflowError for a time out of range."""
    if _TIME.fullmatch(text) is None:
        raise ValueError(text)
    time = datetime.fromisoformat(text.upper())
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
