"""Parser of request bodies: gzip, then one JSON object, an array or NDJSON, into valid hits and rejected rows.

An invalid row does not affect the others: it is rejected with its index, field and reason.
"""

import json
import math
import re
import zlib
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec

from ingest.errors import BodyTooLarge, InvalidBody, InvalidField
from ingest.hits import event, hit
from ingest.hits.event import BeaconEvent, ServerEvent
from ingest.hits.hit import BeaconHit, Hit, ServerHit
from ingest.hits.json_errors import explain

BODY_BYTES_MAX = 8 * 1024 * 1024
BEACON_BYTES_MAX = 64 * 1024
HITS_MAX = 10_000
ROW_BYTES_MAX = 256 * 1024
LINES_MAX = 10 * HITS_MAX
"""Maximum number of line breaks of NDJSON, whose blank lines are not counted as hits."""
OBJECTS_MAX, VALUES_MAX = 2 * HITS_MAX, 50 * HITS_MAX
"""Maximum numbers of JSON objects and values in an array of hits. A hit is one object, or two with `headers`. 8 MiB of
`{},` take 0.4 GB as decoded hits, and 8 kB as gzip."""
CHUNK_BYTES = 4 * 1024
"""Number of compressed bytes that are decompressed at a time. zlib copies the bytes after the end of each gzip member:
with the whole body as one chunk, 8 MiB of empty members took minutes."""

DIGITS_MAX = 400
"""Maximum number of digits that are read of an integer: more than a float has, and fewer than the 4,300 that Python
reads."""


class Rejection(msgspec.Struct, frozen=True):
    """A rejected row of a post."""

    index: Annotated[int, msgspec.Meta(description="Index of the hit in the body, from 0.")]
    field: Annotated[str | None, msgspec.Meta(description="The invalid field; null if the whole row is not a hit.")]
    reason: Annotated[str, msgspec.Meta(description="Why the hit was rejected.")]


class Parsed(NamedTuple):
    """Rows of a post: the valid and the rejected ones, each in the order of the post."""

    hits: list[Hit]
    rejected: list[Rejection]


_SIGN = re.compile(rb'(?:[^"{,]++|"(?:[^"\\]++|\\.)*+"?)*+([{,])', re.DOTALL)
"""Text up to the next brace or comma outside of a JSON string. The end of a string may be missing, because a search for
the end from each quotation mark would be quadratic."""


class Kind(NamedTuple):
    """Page views or events: the JSON in which a post has them, and the functions that check their fields."""

    name: str
    beacon: msgspec.json.Decoder[BeaconHit]
    server: msgspec.json.Decoder[ServerHit]
    many: msgspec.json.Decoder[list[ServerHit]]
    of_beacon: Callable[..., Hit]
    of_server: Callable[[Any, int], Hit]


HITS = Kind(
    "hit",
    msgspec.json.Decoder(BeaconHit),
    msgspec.json.Decoder(ServerHit),
    msgspec.json.Decoder(list[ServerHit]),
    hit.beacon_hit,
    hit.server_hit,
)
EVENTS = Kind(
    "event",
    msgspec.json.Decoder[BeaconHit](BeaconEvent),
    msgspec.json.Decoder[ServerHit](ServerEvent),
    msgspec.json.Decoder[list[ServerHit]](list[ServerEvent]),
    event.beacon_event,
    event.server_event,
)


def decode_beacon(body: bytes, kind: Kind = HITS) -> BeaconHit:
    """Return the fields of a beacon.

    Raises:
        InvalidField: a field is unknown or has the wrong type.
        InvalidBody: the body is not one JSON object.
    """
    try:
        return kind.beacon.decode(body)
    except (ValueError, RecursionError) as error:
        field, reason = explain(error, kind.beacon.type)
        if field is None:
            raise InvalidBody(f"a beacon is one JSON object: {reason}") from None
        raise InvalidField(field, reason) from None


def parse_post(body: bytes, is_ndjson: bool, now_us: int, kind: Kind = HITS) -> Parsed:
    """Return the rows of a server's post: NDJSON if `is_ndjson`, otherwise one JSON object or an array of objects.

    Raises:
        InvalidBody: the body is not JSON, or has no row.
        BodyTooLarge: the body has more than HITS_MAX rows, or too many values to be decoded.
    """
    rows = _lines(body) if is_ndjson else _array(body, kind)
    if not rows:
        raise InvalidBody(f"the body contains no {kind.name}")
    _require_within_limit(f"{kind.name}s", len(rows), HITS_MAX)
    hits: list[Hit] = []
    rejected: list[Rejection] = []
    for index, row in enumerate(rows):
        try:
            hits.append(kind.of_server(_decode(row, kind) if type(row) is bytes else row, now_us))
        except InvalidField as error:
            rejected.append(Rejection(index, error.field or None, error.reason))
    return Parsed(hits, rejected)


def gunzip(body: bytes, bytes_max: int) -> bytes:
    """Return the decompressed body. At most `bytes_max + 1` decompressed bytes are in memory.

    Raises:
        BodyTooLarge: the body decompresses to more than `bytes_max`.
        InvalidBody: the body is not complete gzip data.
    """
    content = bytearray()
    member = zlib.decompressobj(wbits=31)
    for start in range(0, len(body), CHUNK_BYTES):
        chunk = body[start : start + CHUNK_BYTES]
        while chunk:
            if member.eof:
                member = zlib.decompressobj(wbits=31)
            try:
                content += member.decompress(chunk, bytes_max + 1 - len(content))
            except zlib.error:
                raise InvalidBody("the body is not gzip data, although its Content-Encoding is gzip") from None
            if len(content) > bytes_max:
                raise BodyTooLarge(f"the body decompresses to more than {bytes_max} bytes")
            chunk = member.unused_data
    if body and not member.eof:
        raise InvalidBody("the gzip data of the body ends too early")
    return bytes(content)


def _lines(body: bytes) -> list[bytes]:
    """Return the bytes of each row of NDJSON.

    msgspec's `decode_lines` does not require one row per line: `decode_lines` accepts one row on two lines, and two
    rows on one line.
    """
    _require_within_limit("line breaks", body.count(b"\n"), LINES_MAX)
    return [line for line in body.split(b"\n") if line.strip()]


def _array(body: bytes, kind: Kind) -> list[Any]:
    """Return the rows of a JSON array or object: as hits if every row can be decoded, else as the bytes of each row."""
    if not body.lstrip().startswith(b"["):
        return [row] if (row := body.strip()) else []
    _require_few_values(body)
    try:
        return kind.many.decode(body)
    except (ValueError, RecursionError):
        return _separate(body, kind)


def _separate(body: bytes, kind: Kind) -> list[bytes]:
    """Return the bytes of each row of an array that has an invalid row.

    msgspec refuses a whole array, even as `list[msgspec.Raw]`, if a string in one row has a lone surrogate (`\\ud83d`).
    Such strings come from senders that truncate a text inside an emoji or read a log that is not UTF-8. The standard
    library accepts them. Three functions correct its other differences from JSON: `_refuse_constant` refuses NaN and
    Infinity, `_integer` accepts an integer of more than 4,300 digits, and `_fraction` a number like `1e999`.
    """
    try:
        rows = json.loads(body.decode(), parse_constant=_refuse_constant, parse_int=_integer, parse_float=_fraction)
        _require_within_limit(
            f"{kind.name}s", len(rows), HITS_MAX
        )  # before the rows are encoded: four million took 4 s
        return [json.dumps(row).encode() for row in rows]
    except (ValueError, RecursionError) as error:
        raise InvalidBody(f"the body is not JSON: {explain(error, kind.server.type)[1]}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _integer(text: str) -> int:
    """Return the integer of the first DIGITS_MAX digits. A longer integer is out of range for every field."""
    return int(text[:DIGITS_MAX])


def _fraction(text: str) -> float | int:
    """Return the number, or a large integer for a number beyond the range of a float, which json would write as
    Infinity."""
    number = float(text)
    return number if math.isfinite(number) else 10**DIGITS_MAX


def _require_few_values(body: bytes) -> None:
    """Raise BodyTooLarge if the values of an array would take much more memory than its bytes."""
    if body.count(b"{") <= OBJECTS_MAX and body.count(b",") <= VALUES_MAX:
        return
    objects = commas = 0
    for sign in _SIGN.finditer(body):
        objects, commas = objects + (sign[1] == b"{"), commas + (sign[1] == b",")
        _require_within_limit("JSON objects", objects, OBJECTS_MAX)
        _require_within_limit("commas", commas, VALUES_MAX)


def _require_within_limit(things: str, count: int, most: int) -> None:
    if count > most:
        raise BodyTooLarge(f"the body contains {count} {things}; at most {most} are accepted")


def _decode(row: bytes, kind: Kind) -> ServerHit:
    if len(row) > ROW_BYTES_MAX:
        raise InvalidField("", f"has {len(row)} bytes; at most {ROW_BYTES_MAX} are accepted")
    try:
        return kind.server.decode(row)
    except (ValueError, RecursionError) as error:
        field, reason = explain(error, kind.server.type)
        raise InvalidField(field or "", reason) from None
