"""Error text and requested pause of a forge's response."""

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec

UNAVAILABLE = frozenset({429, 502, 503, 504})
"""Statuses that ask the client to repeat the request later."""
ERROR_CHARS_MAX = 500
ERROR_KEYS = ("message", "error", "error_description", "errors")


def retry_after_s(response: httpx.Response) -> float | None:
    """Return the pause that the forge asks for, in seconds, or None. GitHub asks for one with a 403, too.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    if response.status_code not in UNAVAILABLE | {403}:
        return None
    retry_after = response.headers.get("Retry-After", "")
    if retry_after.isdigit():
        return float(retry_after)
    with suppress(ValueError):
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    reset = response.headers.get("X-RateLimit-Reset", "")
    if response.headers.get("X-RateLimit-Remaining") == "0" and reset.isdigit():
        return max(0.0, int(reset) - time.time())
    return None


def error_text(content: bytes) -> str:
    """Return the error messages in a response body on one line, or an empty text if the body is not a JSON object.

    GitHub and Gitea use the keys `message` and `errors`, and GitLab uses `message` or `error`.
    """
    try:
        body = msgspec.json.decode(content, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    text = "; ".join(dict.fromkeys(each for key in ERROR_KEYS for each in _texts(body.get(key))))
    return "".join(each if each.isprintable() else " " for each in text)[:ERROR_CHARS_MAX]


def _texts(value: object) -> Iterator[str]:
    """Yield the messages in a JSON value.

    An error of GitHub is an object with either a message or a resource, a field and a code. GitLab's errors are lists
    of messages by field.
    """
    match value:
        case str():
            yield value
        case {"message": str(message)}:
            yield message
        case {"field": field, "code": code}:
            yield f"{field} {code}"
        case dict():
            yield from (f"{key} {text}" for key, each in value.items() for text in _texts(each))
        case list():
            yield from (text for each in value for text in _texts(each))
        case _:
            return
