"""Hits, and the validation of their fields: the only module that creates a hit from the fields of a post."""

from datetime import UTC, datetime, timedelta
from itertools import compress
from typing import Annotated, NamedTuple

import msgspec

from ingest.errors import InvalidField
from ingest.hits.evidence import (
    ACCEPT_CHARACTERS_MAX,
    ADDRESS_CHARACTERS_MAX,
    HEADERS_CHARACTERS_MAX,
    HEADERS_MAX,
    NO_EVIDENCE,
    Evidence,
    server_evidence,
)
from ingest.hits.parameters import NO_PARAMETERS, Parameters, parameters
from ingest.hits.url import PATH_CHARACTERS_MAX, UNSTORABLE, URL_CHARACTERS_MAX, cut_path, normalize_path, path_of_url
from warehouse.columns.hits import PARAMETER_CHARACTERS_MAX

USER_AGENT_CHARACTERS_MAX = 16_384
EVENT_ID_CHARACTERS_MAX = 128
TIME_ZONE_CHARACTERS_MAX = 64
BYTES_MAX, DURATION_MS_MAX = 2**40, 86_400_000
"""Maximum size and time of a response: 1 TiB and a day."""
_CACHE_HITS = frozenset("hit stale revalidated updating refreshhit prerender".split())
_NO_CACHE = frozenset({"", "-", "none", "unknown"})
BEACON_PATH_CHARACTERS_MAX = 512
"""Maximum length of the stored path of a beacon, which anybody can send; a longer one is cut."""
TEXT_CHARACTERS_MAX = 1_024
"""Maximum length of a stored user agent or referrer; a longer one is cut."""
FIRST = datetime(1995, 1, 1, tzinfo=UTC)
"""Earliest time of a hit. An earlier one is a mistake: Go's zero time is in the year 1."""
FUTURE_MAX = timedelta(minutes=5)
"""Maximum time by which a hit's timestamp may be ahead of this machine's clock."""
CUT_FIELDS = ("path", "userAgent", "referrer")
"""Fields whose texts are cut, beside query parameters."""
NEW_VALUES_PER_DAY = 10_000
"""Default limit on the new paths, referring hosts and values of a query parameter each that hits without a key add to
a project in a day. A site has fewer new pages in a day after its first ones. With paths of 512 characters, a stranger
adds 5 MB."""
DEDUPLICATION_DAYS = 7
"""Number of days for which an event id or an Idempotency-Key is recognised."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_FIRST_US, _FUTURE_MAX_US = (FIRST - EPOCH) // MICROSECOND, FUTURE_MAX // MICROSECOND

EventId = Annotated[str, msgspec.Meta(min_length=1, max_length=EVENT_ID_CHARACTERS_MAX)]
Status = Annotated[int, msgspec.Meta(ge=100, le=599)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=BYTES_MAX)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=DURATION_MS_MAX)]
Cache = Annotated[str, msgspec.Meta(max_length=64)]
Format = Annotated[
    str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.+/-]{0,63}(?!\n)$")
]  # `$` also matches before a newline
_TEXT_PATTERN = r"^[^\x00-\x1f\x7f]*$"
_URL_PATTERN = r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"


def _described(description: str, characters_max: int = URL_CHARACTERS_MAX, **limits: object) -> msgspec.Meta:
    """Return the description and the limits of a text field for the JSON schema.

    msgspec does not enforce these limits; `_hit` does, with its own messages.
    """
    text = {"pattern": _TEXT_PATTERN, "maxLength": characters_max}
    return msgspec.Meta(description=description, extra_json_schema=text | limits)


class BeaconHit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """Fields that a page may send of its own view. Exactly one of `url` and `path` is required."""

    url: Annotated[
        str | None,
        _described("The page's absolute http or https URL. Send either `url` or `path`.", pattern=_URL_PATTERN),
    ] = None
    path: Annotated[
        str | None,
        _described(
            "The page's path. Its query, fragment, trailing `/` and `index.html` are removed; the rest is cut to"
            f" {PATH_CHARACTERS_MAX:,} characters, or {BEACON_PATH_CHARACTERS_MAX} without a key.",
            minLength=1,
        ),
    ] = None
    referrer: Annotated[str | None, _described("URL of the page that links here.")] = None
    event_id: Annotated[
        EventId | None,
        _described(
            f"Id of the view. Views with equal ids within {DEDUPLICATION_DAYS} days are counted once: beacons, and"
            " posts with a key, each by themselves.",
            EVENT_ID_CHARACTERS_MAX,
        ),
    ] = None
    time_zone: Annotated[
        str | None,
        _described(
            "The browser's time zone, such as `Europe/Berlin`. The country follows from it, and is stored.",
            TIME_ZONE_CHARACTERS_MAX,
        ),
    ] = None


class ServerHit(BeaconHit, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """Fields that a server or an edge network may send of a view that it served."""

    user_agent: Annotated[str | None, _described("The visitor's User-Agent header.", USER_AGENT_CHARACTERS_MAX)] = None
    timestamp: Annotated[
        datetime | None,
        msgspec.Meta(
            description=f"Time of the view, from {FIRST.date()} to {FUTURE_MAX.seconds // 60} minutes in the future;"
            " UTC if it has no zone. The default is now.",
            extra_json_schema={"format": "date-time"},
        ),
    ] = None
    status: Annotated[Status | None, msgspec.Meta(description="HTTP status of your server's response.")] = None
    format: Annotated[
        Format | None,
        msgspec.Meta(description="Media type of your server's response, such as `text/html` or `text/markdown`."),
    ] = None
    address: Annotated[
        str | None,
        _described(
            "The visitor's IP address, without a port. It is compared with the published addresses of AI agents and"
            " bots, and never stored.",
            ADDRESS_CHARACTERS_MAX,
        ),
    ] = None
    accept: Annotated[
        str | None, _described("The visitor's Accept header. It is never stored.", ACCEPT_CHARACTERS_MAX)
    ] = None
    bytes: Annotated[Bytes | None, msgspec.Meta(description="Size of your server's response in bytes.")] = None
    duration_ms: Annotated[Milliseconds | None, msgspec.Meta(description="Time of your server's response, in ms.")] = (
        None
    )
    cache: Annotated[
        Cache | None,
        msgspec.Meta(
            description="State of a cache: `HIT`, `MISS`, or the value of a header such as `cf-cache-status`."
        ),
    ] = None
    headers: Annotated[
        dict[str, str] | None,
        msgspec.Meta(
            description="Headers of the visitor's request, by name in any case: `signature`, `signature-input` and"
            " `signature-agent` for signed agents, and `accept-language` and `sec-fetch-mode` for hints. At most"
            f" {HEADERS_MAX} headers with {HEADERS_CHARACTERS_MAX:,} characters in all. A header with an empty"
            " value counts as absent. Of them, the country and the first language of people are stored.",
            extra_json_schema={"maxProperties": HEADERS_MAX},
        ),
    ] = None


class Event(NamedTuple):
    """What a reader did on a page. `props` is a JSON object whose values are texts."""

    name: str
    is_interactive: bool = True
    props: str | None = None


class Hit(NamedTuple):
    """A page view whose fields are valid. `ts_us` is microseconds since 1970, UTC. Of `evidence`, the country and the
    language are stored.

    `cut` has the names of the fields that were longer than the stored texts. A hit with an `event` is this event, and
    no page view. `bytes`, `duration_ms` and `cache` describe the server's response.
    """

    path: str
    ts_us: int
    user_agent: str
    referrer: str | None
    parameters: Parameters
    format: str | None
    status: int | None
    event_id: str | None
    evidence: Evidence = NO_EVIDENCE
    cut: tuple[str, ...] = ()
    event: Event | None = None
    bytes: int | None = None
    duration_ms: int | None = None
    cache: str | None = None


def cache_of(state: str) -> str | None:
    """Return hit or miss for the state of a cache, in any case; None if there was no cache."""
    return None if (lower := state.lower()) in _NO_CACHE else "hit" if lower in _CACHE_HITS else "miss"


def within_limits(hit: Hit, path_characters_max: int = PATH_CHARACTERS_MAX) -> Hit:
    """Return the hit with each text cut to its maximum length."""
    path, user_agent, referrer = hit.path, hit.user_agent, hit.referrer or ""
    are_long = len(user_agent) > TEXT_CHARACTERS_MAX, len(referrer) > TEXT_CHARACTERS_MAX
    too_long = len(path) > path_characters_max, *are_long
    long = [name for name, text in hit.parameters.items() if len(text) > PARAMETER_CHARACTERS_MAX]
    if not long and True not in too_long:
        return hit
    return hit._replace(
        path=cut_path(path, path_characters_max) if too_long[0] else path,
        user_agent=user_agent[:TEXT_CHARACTERS_MAX],
        referrer=referrer[:TEXT_CHARACTERS_MAX] or None,
        parameters={name: text[:PARAMETER_CHARACTERS_MAX] for name, text in hit.parameters.items()},
        cut=(*compress(CUT_FIELDS, too_long), *long),
    )


def beacon_hit(sent: BeaconHit, user_agent: str, now: datetime, evidence: Evidence = NO_EVIDENCE) -> Hit:
    """Return the hit of a beacon. User agent, time and evidence are the HTTP request's. Raises InvalidField."""
    return within_limits(_hit(sent, user_agent, microseconds(now), None, None, evidence), BEACON_PATH_CHARACTERS_MAX)


def server_hit(sent: ServerHit, now_us: int) -> Hit:
    """Return the hit of a server's row. Its user agent is the row's, never the HTTP request's. Raises InvalidField."""
    ts_us = now_us if sent.timestamp is None else _timestamp_us(sent.timestamp, now_us)
    evidence = server_evidence(sent.address, sent.accept, sent.headers, sent.url)
    hit = within_limits(_hit(sent, sent.user_agent or "", ts_us, sent.format, sent.status, evidence))
    if sent.bytes is None and sent.duration_ms is None and sent.cache is None:
        return hit
    duration_ms = None if sent.duration_ms is None else int(sent.duration_ms)
    return hit._replace(bytes=sent.bytes, duration_ms=duration_ms, cache=cache_of(sent.cache or ""))


def _hit(
    sent: BeaconHit, user_agent: str, ts_us: int, format: str | None, status: int | None, evidence: Evidence
) -> Hit:
    if (sent.url is None) == (sent.path is None):
        raise InvalidField("path", "give one of `url` and `path`" + ("" if sent.url is None else ", not both"))
    path, target = _path(sent)
    if sent.time_zone:
        evidence = evidence._replace(time_zone=storable("timeZone", sent.time_zone, TIME_ZONE_CHARACTERS_MAX))
    # Positional, because keyword arguments take 0.3 µs more. A hit of a batch takes 4 µs in all.
    return Hit(
        path,
        ts_us,
        storable("userAgent", user_agent, USER_AGENT_CHARACTERS_MAX),
        storable("referrer", sent.referrer, URL_CHARACTERS_MAX) if sent.referrer else None,
        parameters(target) if "?" in target else NO_PARAMETERS,
        format,
        status,
        storable("eventId", sent.event_id, EVENT_ID_CHARACTERS_MAX) if sent.event_id else None,
        evidence,
    )


def _path(sent: BeaconHit) -> tuple[str, str]:
    """Return the normalised path, and the field from which it was read."""
    if sent.path is not None:
        return normalize_path(sent.path), sent.path
    assert sent.url is not None
    return path_of_url(sent.url), sent.url


def storable(field: str, text: str, characters_max: int) -> str:
    """Return the text of a field, or raise InvalidField if it is too long or has a character that cannot be stored."""
    if len(text) > characters_max:
        raise InvalidField(field, f"has {len(text)} characters; at most {characters_max} are accepted")
    if not text.isprintable() and UNSTORABLE.search(text):
        raise InvalidField(field, "has a control character or a lone surrogate")
    return text


def _timestamp_us(timestamp: datetime, now_us: int) -> int:
    ts_us = microseconds(timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC))
    accepted = accepted_us(now_us)
    if ts_us >= accepted.stop:
        raise InvalidField("timestamp", "is more than 5 minutes in the future")
    if ts_us < accepted.start:
        raise InvalidField("timestamp", f"is before {FIRST.date()}")
    return ts_us


def accepted_us(now_us: int) -> range:
    """Return the times that a hit may have, in microseconds since 1970."""
    return range(_FIRST_US, now_us + _FUTURE_MAX_US + 1)


def microseconds(instant: datetime) -> int:
    """Return the microseconds from 1970 to a time with a zone."""
    return (instant - EPOCH) // MICROSECOND
