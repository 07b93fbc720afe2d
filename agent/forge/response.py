"""What a code host's answer says beside what was asked for: why not, and when to ask again."""

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec

UNAVAILABLE = frozenset({429, 502, 503, 504})
WORDS_CHARS_MAX = 500
TOLD_IN = ("message", "error", "error_description", "errors")


def retry_after_s(answer: httpx.Response) -> float | None:
    """The pause that a host asks for, which GitHub does with 403 too; None if it does not.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    if answer.status_code not in UNAVAILABLE | {403}:
        return None
    asked = answer.headers.get("Retry-After", "")
    if asked.isdigit():
        return float(asked)
    with suppress(ValueError):
        return max(0.0, (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds())
    reset = answer.headers.get("X-RateLimit-Reset", "")
    if answer.headers.get("X-RateLimit-Remaining") == "0" and reset.isdigit():
        return max(0.0, int(reset) - time.time())
    return None


def words_of(content: bytes) -> str:
    """What a host says of its refusal: GitHub and Gitea in `message` and `errors`, GitLab in `message` or `error`."""
    try:
        told = msgspec.json.decode(content, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    text = "; ".join(dict.fromkeys(each for key in TOLD_IN for each in _texts(told.get(key))))
    return "".join(each if each.isprintable() else " " for each in text)[:WORDS_CHARS_MAX]


def _texts(told: object) -> Iterator[str]:
    """GitHub's errors are objects of resource, field and code, or have a message; GitLab's are lists by field."""
    match told:
        case str():
            yield told
        case {"message": str(message)}:
            yield message
        case {"field": field, "code": code}:
            yield f"{field} {code}"
        case dict():
            yield from (f"{key} {text}" for key, each in told.items() for text in _texts(each))
        case list():
            yield from (text for each in told for text in _texts(each))
        case _:
            return
