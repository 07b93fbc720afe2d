"""Error text and requested pause of a forge's response."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from agent.forge.pull_request import ERROR_CHARS_MAX, error_text, retry_after_s


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"message": "Not Found", "documentation_url": "https://docs"}', "Not Found"),
        (
            b'{"message": "Validation Failed", "errors": [{"resource": "Pull", "field": "head", "code": "invalid"}]}',
            "Validation Failed; head invalid",
        ),
        (
            b'{"message": "Validation Failed", "errors": [{"code": "custom", "message": "A pull request exists"}]}',
            "Validation Failed; A pull request exists",
        ),
        (b'{"message": {"title": ["is too long", "is odd"]}}', "title is too long; title is odd"),
        (b'{"message": ["Another open merge request exists: !1"]}', "Another open merge request exists: !1"),
        (b'{"error": "insufficient_scope", "error_description": "needs api"}', "insufficient_scope; needs api"),
        (b'{"error": "Invalid input", "errors": {"title": ["is required"]}}', "Invalid input; title is required"),
        (b'{"message": "one", "error": "one"}', "one"),
        (b'{"message": "a\\u001b[2Jb\\nc"}', "a [2Jb c"),
        (b'{"message": 5}', ""),
        (b"[1]", ""),
        (b"<html>Bad gateway</html>", ""),
        (b"\xff", ""),
    ],
)
def test_error_text_has_the_messages_of_a_documented_response(content: bytes, text: str) -> None:
    assert error_text(content) == text


def test_long_error_text_is_truncated() -> None:
    assert error_text(b'{"message": "%s"}' % (b"x" * 10_000)) == "x" * ERROR_CHARS_MAX


@pytest.mark.parametrize(
    ("status", "headers", "pause_s"),
    [
        (429, {"Retry-After": "7"}, 7),
        (403, {"Retry-After": "7"}, 7),
        (503, {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, 0),
        (403, {"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "99999999999"}, None),
        (403, {}, None),
        (503, {}, None),
        (503, {"Retry-After": "soon"}, None),
        (404, {"Retry-After": "7"}, None),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}, None),
    ],
)
def test_pause_is_that_of_the_response_headers(status: int, headers: dict[str, str], pause_s: float | None) -> None:
    assert retry_after_s(httpx.Response(status, headers=headers)) == pause_s


def test_requested_pause_until_a_date_or_a_reset_time_is_measured_from_now() -> None:
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    date = httpx.Response(503, headers={"Retry-After": format_datetime(in_an_hour, usegmt=True)})
    reset = httpx.Response(
        403, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 3600)}
    )
    for response in (date, reset):
        assert 3000 < (retry_after_s(response) or 0) <= 3600
