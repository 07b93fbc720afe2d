"""What is wrong with JSON that does not decode, in the words of JSON where the decoder's are those of Python."""

import re

import msgspec

NAME_CHARACTERS_SHOWN = 100
"""Of an unknown field: an answer must not be larger than what asked for it."""

_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_WORDS = (
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
    ("Input data was truncated", "JSON ends too early, or a string holds half of a surrogate pair"),
)
_HALF = re.compile(r"JSON is malformed: .* utf-16 surrogate pair \(byte \d+\)")
_AT = re.compile(r"(.*) - at `\$\.(\w+)`", re.DOTALL)


def explained(error: Exception, kind: type[msgspec.Struct]) -> tuple[str | None, str]:
    """The field at fault, if it is one, and the reason. `kind` is what was to be decoded."""
    if isinstance(error, RecursionError):
        return None, "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return None, "not valid UTF-8"
    message = str(error)
    if unknown := _UNKNOWN.match(message):
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        return unknown[1][:NAME_CHARACTERS_SHOWN], f"unknown field; known are {known}"
    at = _AT.match(message)
    field, reason = (at[2], at[1]) if at else (None, _HALF.sub("a string holds half of a surrogate pair", message))
    for theirs, ours in _WORDS:
        reason = reason.replace(theirs, ours)
    return field, reason
