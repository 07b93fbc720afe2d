"""Posted events: what a reader did on a page. An event is a hit with a name and properties."""

import json
from datetime import datetime
from typing import Annotated

import msgspec

from ingest.errors import InvalidField
from ingest.hits.evidence import NO_EVIDENCE, Evidence
from ingest.hits.hit import BeaconHit, Event, Hit, ServerHit, beacon_hit, server_hit, storable
from ingest.hits.url import cut_path, normalize_path
from warehouse.columns.visits import ENGAGEMENT

NAME_CHARACTERS_MAX, KEY_CHARACTERS_MAX, VALUE_CHARACTERS_MAX, PROPS_MAX = 120, 300, 2_000, 30
"""Limits of Plausible: lengths of the name, of a property's name and of its value, and the number of properties."""
BEACON_PROPS_CHARACTERS_MAX = 8_192
"""Maximum length of all properties of an event without a key, which anybody can send."""
DOWNLOAD = "File Download"
"""Name of the event of a download, as the website script and Plausible send it, and imports of logs store it."""
NAMES_PER_DAY = 1_000
"""Limit on the new names of events in a project and day. Further ones are counted together."""

Name = Annotated[
    str,
    msgspec.Meta(
        description="Name of the event, such as `Signup`.",
        extra_json_schema={"minLength": 1, "maxLength": NAME_CHARACTERS_MAX},
    ),
]
Props = Annotated[
    dict[str, str | int | float | bool] | None,
    msgspec.Meta(
        description=f"At most {PROPS_MAX} properties: names of at most {KEY_CHARACTERS_MAX} characters, and texts,"
        f" numbers or booleans of at most {VALUE_CHARACTERS_MAX:,}. They are stored as sent, except a path in the `url`"
        f" of a `{DOWNLOAD}`, which is normalised. Send no personal data.",
        extra_json_schema={"maxProperties": PROPS_MAX},
    ),
]
Interactive = Annotated[
    bool, msgspec.Meta(description="False for an event that happens without an action of the reader.")
]


class BeaconEvent(BeaconHit, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False, kw_only=True):
    """Fields that a page may send for an event: the fields of a page view, a name, and properties."""

    name: Name
    props: Props = None
    interactive: Interactive = True


class ServerEvent(ServerHit, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False, kw_only=True):
    """Fields that a server may send for an event. Fields that describe a page view alone are ignored."""

    name: Name
    props: Props = None
    interactive: Interactive = True


def beacon_event(sent: BeaconEvent, user_agent: str, now: datetime, evidence: Evidence = NO_EVIDENCE) -> Hit:
    """Return the event of a beacon: see `hit.beacon_hit`."""
    event = _event(sent)
    if len(event.props or "") > BEACON_PROPS_CHARACTERS_MAX:
        raise InvalidField("props", f"has more than {BEACON_PROPS_CHARACTERS_MAX} characters of JSON")
    hit = beacon_hit(sent, user_agent, now, evidence)._replace(event=event)
    # Repeated times on a page change no number, and a random id takes as much space as the rest of the row.
    return hit._replace(event_id=None) if event.name == ENGAGEMENT else hit


def server_event(sent: ServerEvent, now_us: int) -> Hit:
    """Return the event of a server's row: see `hit.server_hit`."""
    event = _event(sent)
    if event.name == ENGAGEMENT:
        raise InvalidField("name", "is a name of the website script, and in no report of events; use another one")
    return server_hit(sent, now_us)._replace(event=event)


def _event(sent: BeaconEvent | ServerEvent) -> Event:
    name = storable("name", sent.name.strip(), NAME_CHARACTERS_MAX)
    if not name or not name.isprintable():
        raise InvalidField("name", "has a character that is not printable" if name else "must not be empty")
    props = {} if sent.props is None else {name: _text(value) for name, value in sent.props.items()}
    if len(props) > PROPS_MAX:
        raise InvalidField("props", f"has {len(props)} properties; at most {PROPS_MAX} are accepted")
    for key, value in props.items():
        storable("props", key, KEY_CHARACTERS_MAX)
        storable("props", value, VALUE_CHARACTERS_MAX)
    if name == DOWNLOAD and props.get("url", "").startswith("/"):  # access logs have the same spelling
        props["url"] = cut_path(normalize_path(props["url"]), VALUE_CHARACTERS_MAX)
    return Event(name, sent.interactive, json.dumps(props, ensure_ascii=False) if props else None)


def _text(value: str | float) -> str:
    """Return a value as JSON writes it: true and not True."""
    return value if isinstance(value, str) else json.dumps(value)
