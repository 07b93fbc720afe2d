"""Parts of the reference that the reports share: the fields of their JSON, their parameters and their responses."""

from typing import Annotated

import msgspec

from api.http.cors import AS_OF
from api.http.operation import IF_NONE_MATCH, NDJSON, Content, Json, Parameter, Success, json_content
from api.http.report_parameters import TEXT_CHARACTERS_MAX
from api.routes.reports.tables import CSV, PARQUET
from warehouse.columns import dimensions
from warehouse.columns.dimensions import dimension

Human = Annotated[int, msgspec.Meta(description="Views by people.")]
Ai = Annotated[int, msgspec.Meta(description="Views by AI agents.")]
Total = Annotated[int, msgspec.Meta(description="`human` plus `ai`.")]

_DATE: Json = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
RANGE = (
    Parameter("dateFrom", "First day, or ISO 8601 time, of the range.", _DATE, example="2026-09-01"),
    Parameter("dateTo", "Day or time at which the range ends, exclusive.", _DATE, example="2026-10-01"),
)
AS_OF_PARAMETER = Parameter(
    "asOf",
    f"The `{AS_OF}` of an earlier response: count the hits of that moment.",
    {"pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z(_[0-9]{1,18}){2,3}$"},
)


def _filter(name: str) -> Parameter:
    chosen = dimension(name)
    if name == "path":
        description = "Only this path, the paths with a prefix (`/docs/*`), or with a part (`*install*`)."
        return Parameter(name, description, {"minLength": 1}, example="/docs/*")
    values: Json = {"enum": list(chosen.choices)} if chosen.choices else _TEXT
    return Parameter(name, f"Only this value: {chosen.meaning}.", values, example=chosen.example)


_TEXT: Json = {"minLength": 1, "maxLength": TEXT_CHARACTERS_MAX}
FILTERS = tuple(map(_filter, dimensions.FILTERS))
PARAMETERS = (*RANGE, *FILTERS, AS_OF_PARAMETER, IF_NONE_MATCH)
"""Parameters of the reports that are tables."""
HEADERS = ("ETag", "Cache-Control", AS_OF)
NOT_MODIFIED = Success(304, "The response with this `ETag` is still current.", headers=HEADERS)
PROBLEMS = "invalid-parameter unauthenticated forbidden not-acceptable moment-expired data-incomplete"

FILTERS_TEXT = """\
- A filter selects the hits that have its value; a hit must match all filters. `path` is normalised like the path of a
  hit. The name of an agent without hits is not an error: its counts are zero. An AI agent or bot whose identity was not
  checked has the `verification` `not_checked`; the `verification` of people is unknown. A page (`beacon`) sends no
  `status` and no `format`.
"""
MEASURED_TEXT = """\
- `measured` states whether a source counted people, AI agents and other bots in `all` of the range, in a `part` of it,
  or in `none`: a page (`beacon`) sees no AI, and a source counts nothing before its first hit or after it fell silent.
  `coverage` has the times. {unknown}
"""
UNKNOWN_TEXT = "A count of 0 is null where no source counted; readers whom the filters leave out are 0."
TABLES_TEXT = """\
- With `Accept: text/csv`, `application/vnd.apache.parquet` or `application/x-ndjson` the response is a table of all
  rows, with the columns {columns}. In CSV an unknown value is an empty cell, and an apostrophe precedes a text that
  begins with `=`, `+`, `-`, `@`, a tab or a carriage return: a spreadsheet would compute it as a formula.
"""
MOMENT_TEXT = f"""\
- Each response has the moment of its counts in `{AS_OF}`. A request with this moment as `asOf` counts the same hits, on
  every process of the service, for at least 10 minutes; then the response is `410`. A client that pages sends the
  `{AS_OF}` of its first page with the other pages: each row is then on one page, and the totals do not change.
- Send the `ETag` of a response as `If-None-Match`: if nothing has changed, the response is an empty `304`.
"""
"""Texts that the descriptions of several reports have."""


def table_content(example: msgspec.Struct, csv: str, line: msgspec.Struct) -> dict[str, Content]:
    """Return the content of a report in all of its media types."""
    return {
        **json_content(example),
        CSV: Content(example=csv),
        PARQUET: Content({"type": "string", "contentMediaType": PARQUET}),
        NDJSON: Content(example=msgspec.json.encode(line).decode() + "\n"),
    }
