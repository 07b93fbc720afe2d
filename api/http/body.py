"""Request bodies: media type, limits on size and memory, timeouts and decompression."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, cast

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from api.http.headers import header
from api.http.problems import Problem
from ingest.errors import RETRY_AFTER_S, Overloaded
from ingest.hits.body import gunzip

CHUNK_S = 30
"""Timeout for the next chunk of a body, in seconds."""
TOTAL_S, BYTES_PER_S_MIN = 60, 16 * 1024
"""Deadline for a whole body, in seconds: TOTAL_S, and one more second for each BYTES_PER_S_MIN received."""
SLOW = f"the body did not arrive within {TOTAL_S} s plus 1 s per {BYTES_PER_S_MIN // 1024} KiB"
RECHECK_AFTER_S = 1.0
"""Duration of an upload, in seconds, after which its key and project are checked again. The hot log rejects the rows of
a deleted project in any case. A revoked key works for at most the sum of this time and `cache.TTL_S`."""
FREE_BYTES = 16 * 1024
"""Bytes of a body that no budget counts: small posts and beacons are accepted beside any number of large ones."""
LARGE = CapacityLimiter(2)
"""Limit on the number of large bodies that are decompressed or parsed at once: each takes several times its size."""
_STALLED = "stalled"


class Budget:
    """Bytes that the bodies of unanswered requests may take in this process."""

    def __init__(self, bytes_max: int) -> None:
        self.left = bytes_max

    def take(self, bytes: int) -> None:
        """Take `bytes` until the task of the current request ends. Raises Overloaded if other requests need them."""
        if bytes > self.left:
            raise Overloaded("the bodies of other requests fill the memory for bodies", RETRY_AFTER_S)
        task = asyncio.current_task()
        assert task is not None
        self.left -= bytes

        def give_back(_: "asyncio.Task[Any]") -> None:
            self.left += bytes

        task.add_done_callback(give_back)


KEYED, ANONYMOUS = Budget(64 * 1024 * 1024), Budget(16 * 1024 * 1024)
"""Budgets of requests with a key, and of beacons and forms: strangers cannot use up the memory of posts with a key."""


def media_type(request: Request, accepted: tuple[str, ...]) -> str:
    """Return the media type of the body, which is UTF-8. Raises Problem `unsupported-media-type`."""
    content_type = header(request, b"content-type") or ""
    if content_type in accepted:
        return content_type
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if kind not in accepted:
        detail = f"the Content-Type is {content_type!r}; it must be {' or '.join(accepted)}"
        raise Problem("unsupported-media-type", detail)
    for parameter in parameters:
        charset = parameter.removeprefix("charset=").strip('"')
        if charset != parameter and charset not in ("utf-8", "utf8", "us-ascii"):
            raise Problem("unsupported-media-type", f"the body's charset is {charset!r}; it must be UTF-8")
    return kind


async def read(
    request: Request, bytes_max: int, chunk_s: float = CHUNK_S, total_s: float = TOTAL_S, budget: Budget = KEYED
) -> bytes:
    """Return the whole body, decompressed if it is gzip.

    Raises:
        Problem: `body-too-large`, `body-too-slow`, or `unsupported-media-type` for another Content-Encoding.
        Overloaded: the service is stopping, or the budget is used up.
        InvalidBody, BodyTooLarge: see `ingest.hits.body.gunzip`.
    """
    encoding = (header(request, b"content-encoding") or "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        detail = f"the Content-Encoding is {encoding!r}; it must be gzip or identity"
        raise Problem("unsupported-media-type", detail, headers={"Accept-Encoding": "gzip, identity"})
    if _content_length(request) > bytes_max:
        raise _too_large(bytes_max)
    chunks: list[bytes] = []
    size, counted, more, began_s = 0, FREE_BYTES, True, time.monotonic()
    while more:
        message = await _receive(request, chunk_s, began_s + total_s + size / BYTES_PER_S_MIN)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size > bytes_max:
            raise _too_large(bytes_max)
        if size > counted:
            budget.take(size - counted)
            counted = size
        chunks.append(chunk)
    body = b"".join(chunks)
    if encoding == "gzip":
        body = await to_thread.run_sync(gunzip, body, bytes_max, limiter=LARGE)
        budget.take(max(0, len(body) - counted))
    return body


async def _receive(request: Request, chunk_s: float, deadline_s: float) -> Message:
    """Return the next chunk, if it arrives within `chunk_s` and before `deadline_s` of the monotonic clock.

    A chunk that has arrived needs no timer, which takes 3 µs.

    Raises:
        Problem: `body-too-slow`.
        Overloaded: the service is stopping.
    """
    receiving = cast("Coroutine[Any, Any, Message]", request.receive())
    try:
        receiving.send(None)
    except StopIteration as end:
        return cast("Message", end.value)
    receiving.close()  # it waits, and has taken no chunk
    task = asyncio.current_task()
    assert task is not None
    left_s = deadline_s - time.monotonic()
    timer = asyncio.get_running_loop().call_later(max(0, min(chunk_s, left_s)), task.cancel, _STALLED)
    try:
        return await request.receive()
    except asyncio.CancelledError as error:
        task.uncancel()
        if error.args != (_STALLED,):  # the server is stopping, and the time for requests in flight is over
            raise Overloaded("the service is stopping", RETRY_AFTER_S) from None
        detail = f"no more of the body arrived for {chunk_s:g} s" if chunk_s < left_s else SLOW
        raise Problem("body-too-slow", detail, headers={"Connection": "close"}) from None
    finally:
        timer.cancel()


def _content_length(request: Request) -> int:
    length = header(request, b"content-length") or "0"
    return int(length) if length.isdigit() else 0


def _too_large(bytes_max: int) -> Problem:
    return Problem("body-too-large", f"the body has more than {bytes_max} bytes")
