"""Posts of page views: by a server with an API key, or by a page without one (a beacon).

A response with the status 202 is sent once the hits are on disk.
"""

import hashlib
import time
from typing import Annotated

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api import metrics
from api.http import auth, body, cors, operation
from api.http.headers import header, idempotency_key
from api.http.operation import ADDRESS, JSON, KEY_OPTION, NDJSON, TEXT, Content, Operation, Success, json_content
from api.http.problems import Fault, Problem, pointer
from api.keys import BearerKey
from api.routes import beacon
from api.settings import Settings
from api.state import State, state_of
from ingest.hits import body as post
from ingest.hits.body import Rejection
from ingest.hits.hit import (
    BEACON_PATH_CHARACTERS_MAX,
    DEDUPLICATION_DAYS,
    TEXT_CHARACTERS_MAX,
    BeaconHit,
    ServerHit,
)
from ingest.hits.row import rows
from ingest.hits.url import PATH_CHARACTERS_MAX
from ingest.hotlog.deduplication import Post, Receipt
from warehouse.columns.hits import PARAMETER_CHARACTERS_MAX, PARAMETERS

ON_LOOP_BYTES_MAX, ON_LOOP_HITS_MAX = 64 * 1024, 50
"""Maximum size and number of hits of a body that is parsed on the event loop. A larger body is parsed in a thread. The
switch to a thread and back takes 0.1 ms, as long as the classification of one new user agent."""


class Endpoint:
    """The handler of POST and OPTIONS /v1/analytics/{projectId}/hits.

    Starlette wraps a function in an exception handler of its own, which adds 6 µs per request, but calls an object
    directly; the app handles exceptions anyway.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if scope["method"] == "OPTIONS":
            response = await beacon.preflight(request)
        elif header(request, b"authorization") is None:
            response = await beacon.receive(request)
        else:
            response = await _server_post(request, state_of(request))
        await response(scope, receive, send)


async def _server_post(request: Request, state: State) -> Response:
    began_s = time.monotonic()
    bearer = await auth.key_for(request, state.keyring, request.path_params["projectId"], "ingest")
    key = idempotency_key(request)
    is_ndjson = body.media_type(request, (JSON, NDJSON)) == NDJSON
    content = await body.read(request, post.BODY_BYTES_MAX)
    if time.monotonic() - began_s > body.RECHECK_AFTER_S:
        bearer = await auth.key_for(request, state.keyring, bearer.project, "ingest")
    now_us = time.time_ns() // 1_000
    if _is_large(content, is_ndjson):
        parsed = await to_thread.run_sync(_parse, state, bearer, content, is_ndjson, key, now_us, limiter=body.LARGE)
    else:
        parsed = _parse(state, bearer, content, is_ndjson, key, now_us)
    if parsed.rejected:
        metrics.count_rejected(parsed.rejected)
    if not parsed.rows:
        raise _all_rejected(parsed.rejected, is_ndjson or content.lstrip().startswith(b"["))
    receipt = await state.hotlog.post(parsed)
    metrics.count_hits("server", receipt)
    return Response(msgspec.json.encode(receipt), 202, media_type=JSON)


def _is_large(content: bytes, is_ndjson: bool) -> bool:
    """Return whether the body is parsed in a thread, by its bytes and an estimate of its hits."""
    return len(content) > ON_LOOP_BYTES_MAX or content.count(b"\n" if is_ndjson else b"{") > ON_LOOP_HITS_MAX


def _parse(state: State, bearer: BearerKey, content: bytes, is_ndjson: bool, key: str | None, now_us: int) -> Post:
    """Parse a server's post, and classify and verify its hits."""
    parsed = post.parse_post(content, is_ndjson, now_us)
    stored = rows(bearer.project, parsed.hits, now_us, state.verifier)
    cut = metrics.count_cut(parsed.hits)
    unkeyed = b"" if key is None else hashlib.blake2b(content, digest_size=16).digest()
    fingerprint = unkeyed and _fingerprint(unkeyed, state.secret)
    return Post(bearer.project, stored, parsed.rejected, key, fingerprint, bearer.internal_id, unkeyed, cut)


def _fingerprint(unkeyed: bytes, secret: bytes) -> bytes:
    """Return the fingerprint of a body that is stored. `unkeyed` is the hash of the body.

    The visitor's address in a body of one hit could be found from `unkeyed`, by trying all addresses.
    """
    return hashlib.blake2b(unkeyed, digest_size=16, key=secret).digest()


def _all_rejected(rejected: list[Rejection], is_list: bool) -> Problem:
    """Return the problem with a JSON pointer to each fault, in the only object of the body or in one of its rows."""
    faults = []
    for rejection in rejected:
        index = [rejection.index] if is_list else []
        field = [rejection.field] if rejection.field else []
        faults.append(Fault(rejection.reason, pointer=pointer(*index, *field)))
    members = {"accepted": 0, "duplicates": 0, "rejected": rejected}
    return Problem("invalid-body", "every hit was rejected; nothing was stored", faults, members=members)


_PATH = "/v1/analytics/{projectId}/hits"
_SAMPLE = f"curl {ADDRESS}/v1/analytics/demo/hits"
_ENDPOINT = Endpoint()
_HIT = {
    "path": "/docs/hello",
    "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)",
    "timestamp": "2026-09-01T12:00:00Z",
}
_BEACON = {"url": "https://example.com/docs/hello?utm_source=news", "referrer": "https://www.google.com/"}
_LINES = '{"path": "/docs/hello", "userAgent": "GPTBot/1.3"}\n{"path": "/blog", "userAgent": "curl/8.5.0"}\n'
SEND = Operation(
    id="sendHits",
    method="POST",
    path=_PATH,
    handler=_ENDPOINT,
    tag="Send",
    summary="Send page views",
    description=f"""\
A `202` means that each hit counted in `accepted` is on disk, survives a crash and a power failure, and is in the next
export. After a `4xx` response nothing is stored. After a `5xx`, or if no response arrives, the hits may be stored: send
the request again with the same `Idempotency-Key` or the same `eventId`s, and no hit is counted twice.

With an API key of the scope `ingest` or `write`, for a server, an edge or a log shipper: one JSON object, an array of
objects, or NDJSON with one object per line. The limits are {post.HITS_MAX:,} hits and {post.BODY_BYTES_MAX >> 20} MiB,
also after decompression with `Content-Encoding: gzip`.

- An invalid hit does not affect the others, which are stored. `rejected` has the index (from 0; blank lines of NDJSON
  are not counted), the field and the reason of each invalid hit. If all hits are invalid, the response is `400`, with
  the same `rejected`.
- A path of more than {PATH_CHARACTERS_MAX:,} characters is cut to that length, a `userAgent` or `referrer` of more than
  {TEXT_CHARACTERS_MAX:,}, and a query parameter ({", ".join(PARAMETERS)}) of more than {PARAMETER_CHARACTERS_MAX}. Such
  hits are accepted, and counted as `cut`.
- `userAgent` is classified: send the user agent of the visitor, not that of your own client. A hit without one counts
  as a bot.
- `address`, `accept` and `headers` verify AI agents and bots, and are not stored. Without an address, a hit in the name
  of an agent that could be verified is `not_checked`. A signature is checked for the host of `url`: send `url`, and all
  headers that the signature covers. A request from outside of the published addresses of its agent is a bot
  (`bot:spoofed:NAME`) only while the address lists are fresh: `readership ranges refresh`.
- An `eventId` is counted once per project within {DEDUPLICATION_DAYS} days, in posts with a key and in beacons each by
  themselves: a stranger's beacon makes no hit of a server a duplicate. A repeated one is a duplicate, which is not
  an error.
- An `Idempotency-Key` does the same for a whole post: if it is sent again with the same body within
  {DEDUPLICATION_DAYS} days, the response is the first `202` and nothing is stored; with another body, `422`.

Without a key, for a page: a beacon, as `beacon.js` sends it. One JSON object of at most
{post.BEACON_BYTES_MAX >> 10} KiB with `url` or `path`, and optionally `referrer` and `eventId`. The user agent and the
time are those of the request. The path is cut to {BEACON_PATH_CHARACTERS_MAX} characters. A browser sends `text/plain`
across origins without a preflight request. The `Origin`, if there is one, must be one of the project's. One address may
send {Settings.beacons_per_minute} beacons and pixels per minute, unless the operator has set another limit.
""",
    samples={
        "A server sends two hits": f"""\
{_SAMPLE} {KEY_OPTION} \\
  -H "Content-Type: application/json" -d '[
    {{"path": "/docs/hello", "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"}},
    {{"path": "/docs/hello", "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Firefox/145.0"}}
  ]'""",
        "A server sends what verifies an AI agent": f"""\
{_SAMPLE} {KEY_OPTION} \\
  -H "Content-Type: application/json" -d '{{
    "url": "https://example.com/docs/hello",
    "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)",
    "address": "20.171.206.5", "accept": "*/*", "headers": {{"accept-language": "en"}}
  }}'""",
        "A server sends NDJSON that it can safely send again": f"""\
printf '%s\\n' '{{"path": "/blog", "userAgent": "GPTBot/1.3"}}' '{{"path": "/blog", "userAgent": "curl/8.5"}}' |
  {_SAMPLE} {KEY_OPTION} \\
    -H "Content-Type: application/x-ndjson" -H "Idempotency-Key: log-2026-09-01-part-7" --data-binary @-""",
        "A page sends a beacon": f"""\
{_SAMPLE} -H "Content-Type: text/plain" -A "Mozilla/5.0 Firefox/145.0" \\
  -d '{{"url": "https://example.com/docs/hello", "eventId": "0b9c2b8e-6a55-4a0e-9d2c-7c7f3f7f3f10"}}'""",
    },
    parameters=(operation.idempotency_key("post"),),
    body={
        JSON: Content(
            (ServerHit, Annotated[list[ServerHit], msgspec.Meta(min_length=1, max_length=post.HITS_MAX)], BeaconHit),
            examples={"hit": _HIT, "hits": [_HIT, {"path": "/blog"}], "beacon": _BEACON},
        ),
        NDJSON: Content(example=_LINES),
        TEXT: Content({"type": "string", "contentSchema": BeaconHit}, msgspec.json.encode(_BEACON).decode()),
    },
    responses=(
        Success(
            202,
            "Stored.",
            json_content(Receipt(1, 0, [Rejection(1, "path", "give one of `url` and `path`")])),
            ("Access-Control-Allow-Origin",),
        ),
    ),
    problems="invalid-body invalid-header unauthenticated forbidden origin-not-allowed not-found body-too-slow"
    " body-too-large unsupported-media-type idempotency-mismatch rate-limited overloaded",
    problem_schemas={400: "RejectedPost"},
    key="optional",
)
MAY_SEND = Operation(
    id="mayPageSend",
    method="OPTIONS",
    path=_PATH,
    handler=_ENDPOINT,
    tag="Send",
    summary="Check whether pages of an origin may send",
    description="The preflight request of a browser, before a page of another origin sends JSON.",
    samples={"": f'curl -i -X OPTIONS {ADDRESS}/v1/analytics/demo/hits -H "Origin: https://example.com"'},
    responses=(
        Success(
            204,
            "The page may send if the response has its origin.",
            headers=("Allow", *cors.HEADERS),
        ),
    ),
    problems="origin-not-allowed not-found",
    key="none",
)
OPERATIONS = (SEND, MAY_SEND)
