"""What a sender says of a page view, and the hit that it makes: the one place where a hit's fields are checked."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple
from urllib.parse import parse_qs

import msgspec

from ingest.errors import InvalidField
from ingest.hits.url import UNSTORABLE, URL_CHARACTERS_MAX, of_path, of_url

USER_AGENT_CHARACTERS_MAX = 16_384
EVENT_ID_CHARACTERS_MAX = 128
UTM_SOURCE_CHARACTERS_KEPT = 256
FUTURE_MAX = timedelta(minutes=5)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND

EventId = Annotated[str, msgspec.Meta(min_length=1, max_length=EVENT_ID_CHARACTERS_MAX)]
Status = Annotated[int, msgspec.Meta(ge=100, le=599)]
Format = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.+/-]{0,63}(?!\n)$")]  # `$` alone lets a line end follow


class BeaconHit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """What a page may say of its own view. One of `url` and `path` is needed."""

    url: str | None = None
    path: str | None = None
    referrer: str | None = None
    event_id: EventId | None = None


class ServerHit(BeaconHit, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """What a server or an edge may say of a view it served."""

    user_agent: str | None = None
    timestamp: datetime | None = None
    status: Status | None = None
    format: Format | None = None


class Hit(NamedTuple):
    """A page view whose fields are known to be good. `ts_us` is microseconds since 1970, UTC."""

    path: str
    ts_us: int
    user_agent: str
    referrer: str | None
    utm_source: str | None
    format: str | None
    status: int | None
    event_id: str | None


def of_beacon(sent: BeaconHit, user_agent: str, now: datetime) -> Hit:
    """The hit of a beacon; its user agent and time are the request's own.

    Raises:
        InvalidField: naming the first field at fault.
    """
    return _hit(sent, user_agent, microseconds(now), None, None)


def of_server(sent: ServerHit, now_us: int) -> Hit:
    """The hit of a server's row; its user agent is the row's, never the sender's own.

    Raises:
        InvalidField: naming the first field at fault.
    """
    ts_us = now_us if sent.timestamp is None else _timestamp_us(sent.timestamp, now_us)
    return _hit(sent, sent.user_agent or "", ts_us, sent.format, sent.status)


def _hit(sent: BeaconHit, user_agent: str, ts_us: int, format: str | None, status: int | None) -> Hit:
    if (sent.url is None) == (sent.path is None):
        raise InvalidField("path", "give one of `url` and `path`" + ("" if sent.url is None else ", not both"))
    path, target = _path(sent)
    return Hit(
        path=path,
        ts_us=ts_us,
        user_agent=_text("userAgent", user_agent, USER_AGENT_CHARACTERS_MAX),
        referrer=_text("referrer", sent.referrer, URL_CHARACTERS_MAX) if sent.referrer else None,
        utm_source=utm_source(target) if "?" in target else None,
        format=format,
        status=status,
        event_id=_text("eventId", sent.event_id, EVENT_ID_CHARACTERS_MAX) if sent.event_id else None,
    )


def _path(sent: BeaconHit) -> tuple[str, str]:
    """The normalised path, and the text it came from."""
    if sent.path is not None:
        return of_path(sent.path), sent.path
    assert sent.url is not None
    return of_url(sent.url), sent.url


def _text(field: str, text: str, characters_max: int) -> str:
    if len(text) > characters_max:
        raise InvalidField(field, f"has {len(text)} characters; at most {characters_max} are taken")
    if not text.isprintable() and UNSTORABLE.search(text):
        raise InvalidField(field, "has a control character or a lone surrogate")
    return text


def utm_source(target: str) -> str | None:
    """The `utm_source` of a URL's or path's query, cut at UTM_SOURCE_CHARACTERS_KEPT; None where there is none."""
    query = target.partition("#")[0].partition("?")[2]
    if "utm_source=" not in query:
        return None
    values = parse_qs(query, max_num_fields=None).get("utm_source")
    return (_storable(values[0])[:UTM_SOURCE_CHARACTERS_KEPT] or None) if values else None


def _storable(text: str) -> str:
    return UNSTORABLE.sub("", text)


def _timestamp_us(timestamp: datetime, now_us: int) -> int:
    ts_us = microseconds(timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC))
    if ts_us > now_us + FUTURE_MAX // MICROSECOND:
        raise InvalidField("timestamp", "is more than 5 minutes in the future")
    if ts_us < _FIRST_US:
        raise InvalidField("timestamp", "is before the year 1 in UTC")
    return ts_us


def microseconds(instant: datetime) -> int:
    """Microseconds from 1970 to an aware instant."""
    return (instant - EPOCH) // MICROSECOND
