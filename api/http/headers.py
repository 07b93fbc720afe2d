"""Request headers, each read without decoding the others, because Starlette's `request.headers` takes longer."""

import re

from starlette.requests import Request

from api.http.problems import Problem

IDEMPOTENCY_KEY_CHARACTERS_MAX = 255
_GZIP = re.compile(r"(?:^|,)\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)", re.IGNORECASE)
"""The coding gzip in Accept-Encoding, unless its weight is 0, which means that gzip is not acceptable."""


def header(request: Request, name: bytes) -> str | None:
    """Return the first value of a header. `name` is in lower case."""
    for other, value in request.scope["headers"]:
        if other == name:
            decoded: str = value.decode("latin-1")
            return decoded
    return None


def matches_etag(request: Request, etag: str) -> bool:
    """Return whether If-None-Match has the ETag, in its weak or strong form."""
    etags = [text.strip().removeprefix("W/") for text in (header(request, b"if-none-match") or "").split(",")]
    return etag.removeprefix("W/") in etags or "*" in etags


def accepts_gzip(request: Request) -> bool:
    """Return whether the response may have the Content-Encoding gzip."""
    return _GZIP.search(header(request, b"accept-encoding") or "") is not None


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key, if any. Raises Problem `invalid-header` if it is empty or too long."""
    key = header(request, b"idempotency-key")
    if key is not None and not 1 <= len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX:
        detail = f"the Idempotency-Key has {len(key)} characters; it must have 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX}"
        raise Problem("invalid-header", detail)
    return key
