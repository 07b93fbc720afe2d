"""A sent row becomes a hit with the same fields, or one of its fields is named as invalid."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import InvalidField
from ingest.hits.evidence import NO_EVIDENCE, Evidence
from ingest.hits.hit import (
    EVENT_ID_CHARACTERS_MAX,
    FIRST,
    FUTURE_MAX,
    TEXT_CHARACTERS_MAX,
    USER_AGENT_CHARACTERS_MAX,
    BeaconHit,
    Hit,
    ServerHit,
    beacon_hit,
    microseconds,
    server_hit,
)

MICROSECOND = timedelta(microseconds=1)
NOW = datetime(2026, 9, 15, 12, tzinfo=UTC)
NOW_US = 1_789_473_600_000_000  # by `date -u -d 2026-09-15T12:00:00Z +%s`


def test_beacon_has_the_user_agent_and_time_of_its_request_and_a_server_hit_those_of_its_row() -> None:
    sent = BeaconHit(url="https://example.com/a/?utm_source=news", referrer="https://example.org/", event_id="1")
    news = {"utm_source": "news"}
    beacon = Hit("/a", NOW_US, "Firefox", "https://example.org/", news, None, None, "1")
    assert beacon_hit(sent, "Firefox", NOW) == beacon
    for written in (datetime(2026, 9, 15, 10, tzinfo=timezone(timedelta(hours=-2))), NOW.replace(tzinfo=None)):
        row = ServerHit(path="/a", user_agent="curl/8", timestamp=written, status=304, format="text/markdown")
        assert server_hit(row, NOW_US + 1) == Hit("/a", NOW_US, "curl/8", None, {}, "text/markdown", 304, None)
    assert server_hit(ServerHit(path="/a"), NOW_US) == Hit("/a", NOW_US, "", None, {}, None, None, None)


def test_evidence_is_that_of_the_request_of_a_beacon_and_of_the_row_of_a_server() -> None:
    evidence = Evidence("192.0.2.7")
    assert beacon_hit(BeaconHit(path="/"), "", NOW, evidence).evidence is evidence
    sent = ServerHit(url="https://example.com/a", address="192.0.2.7", accept="text/html", headers={"A": "b"})
    expected = Evidence("192.0.2.7", "text/html", {"a": "b"}, "https://example.com/a")
    assert server_hit(sent, NOW_US).evidence == expected
    assert server_hit(ServerHit(path="/"), NOW_US).evidence == NO_EVIDENCE


def test_empty_referrer_and_empty_event_id_are_null() -> None:
    hit = beacon_hit(BeaconHit(path="/", referrer="", event_id=""), "", NOW)
    assert (hit.referrer, hit.event_id) == (None, None)


@pytest.mark.parametrize(
    ("sent", "field", "reason"),
    [
        ({"path": None}, "path", "give one of `url` and `path`"),
        ({"url": "https://example.com/"}, "path", "give one of `url` and `path`, not both"),
        ({"path": None, "url": "/a"}, "url", "must be an absolute http or https URL; send a bare path as `path`"),
        ({"user_agent": "a\x00"}, "userAgent", "has a control character or a lone surrogate"),
        ({"referrer": "\ud800"}, "referrer", "has a control character or a lone surrogate"),
        ({"user_agent": "a" * 16_385}, "userAgent", "has 16385 characters; at most 16384 are accepted"),
        ({"event_id": "a" * 129}, "eventId", "has 129 characters; at most 128 are accepted"),
        ({"timestamp": NOW + FUTURE_MAX + MICROSECOND}, "timestamp", "is more than 5 minutes in the future"),
        ({"timestamp": FIRST - MICROSECOND}, "timestamp", "is before 1995-01-01"),
        ({"timestamp": datetime(1, 1, 1, tzinfo=timezone(timedelta(minutes=1)))}, "timestamp", "is before 1995-01-01"),
    ],
)
def test_first_invalid_field_is_named_with_the_reason(sent: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidField) as raised:
        server_hit(ServerHit(**{"path": "/", **sent}), NOW_US)
    assert (raised.value.field, raised.value.reason) == (field, reason)


def test_fields_as_long_as_their_limits_and_a_time_as_late_as_its_limit_are_accepted() -> None:
    user_agent, event_id = "a" * TEXT_CHARACTERS_MAX, "b" * EVENT_ID_CHARACTERS_MAX
    hit = server_hit(ServerHit(path="/", user_agent=user_agent, event_id=event_id, timestamp=NOW + FUTURE_MAX), NOW_US)
    assert (hit.user_agent, hit.event_id, hit.ts_us, hit.cut) == (user_agent, event_id, NOW_US + 300_000_000, ())


def test_longer_texts_are_cut_and_named() -> None:
    page = "https://example.com/" + "p" * 3_000
    sent = ServerHit(url=f"{page}?utm_source={'s' * 300}", referrer=page, user_agent="u" * USER_AGENT_CHARACTERS_MAX)
    hit = server_hit(sent, NOW_US)
    assert hit.path == "/" + "p" * 2_047
    assert (hit.user_agent, hit.referrer, hit.parameters) == ("u" * 1_024, page[:1_024], {"utm_source": "s" * 256})
    assert hit.cut == ("path", "userAgent", "referrer", "utm_source")


def test_path_of_a_beacon_is_cut_earlier_and_a_long_time_zone_is_refused() -> None:
    assert beacon_hit(BeaconHit(path="/" + "p" * 511), "", NOW).cut == ()
    assert server_hit(ServerHit(path="/" + "p" * 600), NOW_US).cut == ()
    hit = beacon_hit(BeaconHit(path="/" + "é" * 100), "", NOW)
    assert (hit.path, hit.cut) == ("/" + "%C3%A9" * 85, ("path",))
    with pytest.raises(InvalidField, match="timeZone"):
        beacon_hit(BeaconHit(path="/", time_zone="a" * 65), "", NOW)


@pytest.mark.long
@given(st.datetimes(datetime(1000, 1, 1), datetime(3000, 1, 1), timezones=st.timezones()))  # noqa: DTZ001
def test_microseconds_are_those_of_the_same_instant_in_any_zone(instant: datetime) -> None:
    seconds, micros = divmod(microseconds(instant), 1_000_000)
    assert datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds, microseconds=micros) == instant.astimezone(UTC)
