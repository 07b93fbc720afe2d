"""The body of a post into hits.

A row that is not a hit is rejected by itself, with its index, field and reason; the others go on.
"""

import json
import math
import zlib
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from ingest.errors import BodyTooLarge, InvalidBody, InvalidField
from ingest.hits import hit
from ingest.hits.hit import BeaconHit, Hit, ServerHit, microseconds
from ingest.hits.json_errors import explained

BODY_BYTES_MAX = 8 * 1024 * 1024
BEACON_BYTES_MAX = 64 * 1024
HITS_MAX = 10_000
PIECE_BYTES = 4 * 1024
"""Packed bytes unpacked at a time. What follows a gzip member is copied at its end: of 8 MiB of empty members, given
whole, that took minutes."""

DIGITS_KEPT = 400
"""Of a whole number: more than any float holds, and few enough for Python to read and to write."""


class Rejection(msgspec.Struct, frozen=True):
    """Why the row at `index` of the post was not taken. `field` is null where the row as a whole is no hit."""

    index: int
    field: str | None
    reason: str


class Parsed(NamedTuple):
    """The rows of a post: hits, and rejections, both in the order sent."""

    hits: list[Hit]
    rejected: list[Rejection]


_BEACON = msgspec.json.Decoder(BeaconHit)
_SERVER = msgspec.json.Decoder(ServerHit)
_SERVER_MANY = msgspec.json.Decoder(list[ServerHit])


def of_beacon(body: bytes, user_agent: str, now: datetime) -> Hit:
    """The one hit of a beacon; its user agent and time are the request's own.

    Raises:
        InvalidField: a field is missing, unknown or not of its form.
        InvalidBody: the body is not one JSON object.
    """
    try:
        sent = _BEACON.decode(body)
    except (ValueError, RecursionError) as error:
        field, reason = explained(error, BeaconHit)
        if field is None:
            raise InvalidBody(f"a beacon is one JSON object: {reason}") from None
        raise InvalidField(field, reason) from None
    return hit.of_beacon(sent, user_agent, now)


def of_post(body: bytes, lines: bool, now: datetime) -> Parsed:
    """The hits of a server's post: NDJSON if `lines`, else one JSON object or an array of them.

    Raises:
        InvalidBody: the body is not JSON, or holds no row.
        BodyTooLarge: more than HITS_MAX rows.
    """
    rows = _lines(body) if lines else _array(body)
    if not rows:
        raise InvalidBody("the body holds no hit")
    _refuse_over_limit(len(rows))
    hits: list[Hit] = []
    rejected: list[Rejection] = []
    now_us = microseconds(now)
    for index, row in enumerate(rows):
        try:
            hits.append(hit.of_server(row if type(row) is ServerHit else _decoded(row), now_us))
        except InvalidField as error:
            rejected.append(Rejection(index, error.field or None, error.reason))
    return Parsed(hits, rejected)


def gunzipped(body: bytes, bytes_max: int) -> bytes:
    """The content of a gzip body; never more than `bytes_max` of it is held.

    Raises:
        BodyTooLarge: it decompresses to more than that.
        InvalidBody: it is not whole gzip data.
    """
    whole = bytearray()
    member = zlib.decompressobj(wbits=31)
    for start in range(0, len(body), PIECE_BYTES):
        piece = body[start : start + PIECE_BYTES]
        while piece:
            if member.eof:
                member = zlib.decompressobj(wbits=31)
            try:
                whole += member.decompress(piece, bytes_max + 1 - len(whole))
            except zlib.error:
                raise InvalidBody("the body is not gzip data, though its Content-Encoding says so") from None
            if len(whole) > bytes_max:
                raise BodyTooLarge(f"the body decompresses to more than {bytes_max} bytes")
            piece = member.unused_data
    if body and not member.eof:
        raise InvalidBody("the gzip data of the body ends too early")
    return bytes(whole)


def _lines(body: bytes) -> list[Any]:
    """The rows of NDJSON, a row a line: decoded where all are good, else bytes to be decoded one by one.

    Not by `decode_lines`, which would let a row go over several lines, and several rows stand on one.
    """
    lines = [line for line in body.split(b"\n") if line.strip()]
    try:
        return [_SERVER.decode(line) for line in lines]
    except (ValueError, RecursionError):
        return lines


def _array(body: bytes) -> list[Any]:
    """The rows of a JSON array or object, as `_lines` gives them."""
    if not body.lstrip().startswith(b"["):
        return [body] if body.strip() else []
    try:
        return _SERVER_MANY.decode(body)
    except (ValueError, RecursionError):
        return _parted(body)


def _parted(body: bytes) -> list[Any]:
    """The rows of an array that has a bad one.

    By the standard library, because msgspec refuses the whole array for a lone surrogate (`\\ud83d`) in one row: what
    a sender writes who cuts a text within an emoji, or read a log that is not UTF-8. It also takes what is no JSON, NaN
    and Infinity, and of numbers that are JSON it refuses whole ones of more than 4,300 digits.
    """
    try:
        return _written_apart(body)
    except (ValueError, RecursionError) as error:
        raise InvalidBody(f"the body is not JSON: {explained(error, ServerHit)[1]}") from None


def _written_apart(body: bytes) -> list[bytes]:
    rows = json.loads(body.decode(), parse_constant=_no_constant, parse_int=_whole, parse_float=_fraction)
    _refuse_over_limit(len(rows))  # before each is written: of four million that took four seconds
    return [json.dumps(row).encode() for row in rows]


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON")


def _whole(text: str) -> int:
    """Out of every field's range past so many digits, which its row is then rejected for."""
    return int(text[:DIGITS_KEPT])


def _fraction(text: str) -> float | int:
    """The number; one that no float can hold becomes a whole one, because it would be written as Infinity."""
    number = float(text)
    return number if math.isfinite(number) else 10**DIGITS_KEPT


def _refuse_over_limit(rows: int) -> None:
    if rows > HITS_MAX:
        raise BodyTooLarge(f"the body holds {rows} hits; at most {HITS_MAX} are taken at once")


def _decoded(row: bytes) -> ServerHit:
    try:
        return _SERVER.decode(row)
    except (ValueError, RecursionError) as error:
        field, reason = explained(error, ServerHit)
        raise InvalidField(field or "", reason) from None
