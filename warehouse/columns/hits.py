"""Columns of `hits`: one row for each page view. To add a column, add a row to COLUMNS.

The table's schema and the step that adds the column to older tables follow from the row, and so does the table of
columns in docs/data.md, except for its text. The value of a query parameter is also read from the addresses of pages.
"""

from dataclasses import dataclass
from typing import Literal

Type = Literal["string", "int16", "int32", "int64", "date32", "timestamp"]
"""Name of an Arrow type; `timestamp` is in microseconds and UTC. This module does not load Arrow."""
PARAMETER_CHARACTERS_MAX = 256
"""Maximum length of the stored value of a query parameter; a longer one is cut."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `hits`. Its meaning is a comment in the table.

    `since` is the first version of the table's schema with the column; rows of older versions are null. `new_values`
    names the new values of which hits without a key may add only some in a day; None for any number.
    `is_parameter`: the column is read from the query of the page's address: see `ingest.hits.parameters`.
    """

    name: str
    type: Type
    meaning: str
    is_required: bool = False
    since: int = 1
    new_values: str | None = None
    is_parameter: bool = False


def _required(name: str, type: Type, meaning: str, new_values: str | None = None) -> Column:
    return Column(name, type, meaning, is_required=True, new_values=new_values)


def _text(name: str, meaning: str, since: int = 1, new_values: str | None = None) -> Column:
    return Column(name, "string", meaning, since=since, new_values=new_values)


def _parameter(name: str, since: int) -> Column:
    meaning = f"{name} of the page's query, at most {PARAMETER_CHARACTERS_MAX} characters"
    return Column(name, "string", meaning, since=since, new_values=f"{name}s", is_parameter=True)


COLUMNS = (
    _required("project_id", "string", "project the hit belongs to"),
    _required("ts", "timestamp", "when the page was viewed, UTC, microseconds"),
    _required("date", "date32", "UTC day of ts; the partition"),
    _required("path", "string", "normalised path: no query, fragment or trailing slash", "paths"),
    _required("traffic", "string", "human, ai or bot"),
    _text("agent", "name of the AI agent or bot; null for people and unnamed bots"),
    _text("operator", "who runs the AI agent"),
    _text("purpose", "training, search, assistant, agent or data; null unless ai"),
    _required("rule", "string", "the classification rule that matched"),
    _required("ruleset", "string", "version of the rules that classified it"),
    _required("user_agent", "string", "user agent as received; empty where there was none"),
    _text("browser", "browser family; null if unknown, and for AI agents and bots"),
    _text("os", "operating system family; null if unknown"),
    _text("device", "kind of device: desktop, mobile, tablet, tv, console, bot or other"),
    _text("referrer", "referring URL as received"),
    _text("referrer_host", "host of the referring URL", new_values="referring hosts"),
    _parameter("utm_source", since=1),
    _text("format", "media type served, such as text/html; from the path in logs and in server posts without it"),
    Column("status", "int16", "HTTP status served"),
    _required("source", "string", "beacon, server or log"),
    _text("event_id", "sender's id of the view, counted once in 7 days"),
    _required("received_at", "timestamp", "when Readership took the hit, UTC"),
    _text("verification", "result of the check of the agent's identity; null if there was none", since=2),
    _text("verified_by", "method of the check, and the id of the list that it used", since=2),
    _text("hints", "headers that browsers send and the request lacked, sorted, joined by a comma", since=2),
    _parameter("utm_medium", since=4),
    Column("visitor", "int64", "reader of the UTC day: a keyed hash, whose key is destroyed after the day", since=5),
    _parameter("utm_campaign", since=5),
    _parameter("utm_term", since=5),
    _parameter("utm_content", since=5),
    Column(
        "click",
        "string",
        "name of an advertisement's or Meta's parameter in the page's query, such as gclid; never its value",
        since=5,
        is_parameter=True,
    ),
    _text("country", "country of the reader, two letters", since=5),
    _text("language", "first language of the reader, as en or pt-BR", since=5),
    Column("engaged_ms", "int32", "reserved: null", since=5),
    _text("channel", "how a person came: Search, Referral, Direct ...; null within the site", since=5),
    Column("bytes", "int64", "size of the response that a server sent; null in logs, see requests", since=5),
    Column("duration_ms", "int32", "time that a server took for the response, ms; null in logs", since=5),
    _text("cache", "hit or miss of the cache in front of a server; null in logs", since=5),
)
"""Columns in the order of a row. A new one is the last, because a waiting row of an older release has the first ones.
Only the first version has required columns."""
PARAMETERS = tuple(each.name for each in COLUMNS if each.is_parameter)
"""Columns that are read from the query of a page's address."""
NEW_VALUES = {each.name: each.new_values for each in COLUMNS if each.new_values}
"""Columns with a limit on new values, each with the noun for these values."""
