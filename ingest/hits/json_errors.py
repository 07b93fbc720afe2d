"""Explanations of decoding errors, with the JSON names of types in place of the Python names of msgspec."""

import re

import msgspec

NAME_CHARACTERS_MAX = 100
"""Maximum length of an unknown field's name in a response; a longer name is truncated, as a sender may choose any."""
HALF_PAIR = "a string contains half of a surrogate pair"

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_TERMS = (
    (" | null`", "`"),
    ("`str`", "a string"),
    ("`int`", "a whole number"),
    ("`float`", "a fraction"),
    ("`bool`", "true or false"),
    ("`datetime`", "an RFC 3339 time"),
    ("`array`", "an array"),
    ("`object`", "an object"),
    ("`null`", "null"),
    ("RFC3339 encoded datetime", "RFC 3339 time, such as 2026-09-01T12:00:00Z"),
    ("Input data was truncated", f"JSON ends too early, or {HALF_PAIR}"),
)
_HALF_PAIR = re.compile(r"JSON is malformed: .* utf-16 surrogate pair \(byte \d+\)")
_AT_FIELD = re.compile(r"(.*) - at `\$\.(\w+)(?:\[\.\.\.\])?`", re.DOTALL)


def explain(error: Exception, struct: type[msgspec.Struct]) -> tuple[str | None, str]:
    """Return the invalid field, or None if the fault is not in one field, and the reason.

    `struct` is the type that could not be decoded.
    """
    if isinstance(error, RecursionError):
        return None, "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return None, "not valid UTF-8"
    message = str(error)
    if unknown := _UNKNOWN_FIELD.match(message):
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(struct))
        return unknown[1][:NAME_CHARACTERS_MAX], f"unknown field; known fields: {known}"
    at = _AT_FIELD.match(message)
    field, reason = (at[2], at[1]) if at else (None, _HALF_PAIR.sub(HALF_PAIR, message))
    for python, json in _TERMS:
        reason = reason.replace(python, json)
    return field, reason
