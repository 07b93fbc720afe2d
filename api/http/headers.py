"""What a header of a request says, found without decoding the others: the way in is busy enough for that to tell."""

from starlette.requests import Request

from api.http.problems import Problem

IDEMPOTENCY_KEY_CHARACTERS_MAX = 255


def header(request: Request, name: bytes) -> str | None:
    """The first value of a header; `name` is in lower case."""
    for given, value in request.scope["headers"]:
        if given == name:
            decoded: str = value.decode("latin-1")
            return decoded
    return None


def knows(request: Request, tag: str) -> bool:
    """Whether the client has what this ETag names; one that a proxy has weakened is the same."""
    known = [each.strip().removeprefix("W/") for each in (header(request, b"if-none-match") or "").split(",")]
    return tag in known or "*" in known


def idempotency_key(request: Request) -> str | None:
    """Raises Problem `invalid-header`, for one that is empty or too long."""
    key = header(request, b"idempotency-key")
    if key is not None and not 1 <= len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX:
        detail = f"the Idempotency-Key has {len(key)} characters; 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} are taken"
        raise Problem("invalid-header", detail)
    return key
