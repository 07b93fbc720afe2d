"""Explanations of decoding errors in the terms of JSON."""

from datetime import datetime

import msgspec
import pytest

from ingest.hits.json_errors import HALF_PAIR, NAME_CHARACTERS_MAX, explain


class Item(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    path: str
    status: int | None = None
    seen_at: datetime | None = None
    tags: list[str] = []
    headers: dict[str, str] = {}


def explained(body: bytes) -> tuple[str | None, str]:
    with pytest.raises((msgspec.DecodeError, RecursionError, UnicodeDecodeError)) as failed:
        msgspec.json.decode(body, type=Item)
    return explain(failed.value, Item)


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        (b'{"path": 1}', "path", "Expected a string, got a whole number"),
        (b'{"path": "/", "status": "200"}', "status", "Expected a whole number, got a string"),
        (b'{"path": "/", "status": 1.5}', "status", "Expected a whole number, got a fraction"),
        (b'{"path": "/", "status": true}', "status", "Expected a whole number, got true or false"),
        (b'{"path": "/", "seenAt": "today"}', "seenAt", "Invalid RFC 3339 time, such as 2026-09-01T12:00:00Z"),
        (b'{"path": "/", "tags": {}}', "tags", "Expected an array, got an object"),
        (b'{"path": "/", "headers": {"a": 1}}', "headers", "Expected a string, got a whole number"),
        (b'{"path": null}', "path", "Expected a string, got null"),
        (b"[]", None, "Expected an object, got an array"),
        (b"{}", None, "Object missing required field `path`"),
        (b'{"path": "\\ud800\\u0041"}', None, HALF_PAIR),
        (b'{"path": "/', None, f"JSON ends too early, or {HALF_PAIR}"),
        (b'{"path": "\xff"}', None, "not valid UTF-8"),
    ],
)
def test_fault_is_explained_with_its_field(body: bytes, field: str | None, reason: str) -> None:
    assert explained(body) == (field, reason)


def test_unknown_field_is_named_with_the_known_ones() -> None:
    reason = "unknown field; known fields: path, status, seenAt, tags, headers"
    assert explained(b'{"path": "/", "seen_at": 1}') == ("seen_at", reason)


def test_name_of_an_unknown_field_is_truncated_and_may_have_line_ends() -> None:
    name = "a\\n" + "b" * NAME_CHARACTERS_MAX
    field, _ = explained(f'{{"{name}": 1}}'.encode())
    assert field == "a\n" + "b" * (NAME_CHARACTERS_MAX - 2)


def test_deep_nesting_is_explained() -> None:
    assert explain(RecursionError(), Item) == (None, "nested too deeply")
