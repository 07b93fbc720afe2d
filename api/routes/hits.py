"""Page views in: a server's post with a key, a page's beacon without one, and the pixel.

Each waits until its rows are on disk; only then does it answer 202.
"""

import asyncio
import hashlib
import sqlite3
import time
from datetime import UTC, datetime

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api import metrics
from api.http import auth, body, parameters
from api.http.headers import header, idempotency_key
from api.http.problems import Fault, Problem, pointer
from api.keys import BearerKey
from api.state import State, state_of
from ingest.errors import InvalidField, Overloaded
from ingest.hits import body as post
from ingest.hits import hit
from ingest.hits.hit import BeaconHit, Hit, microseconds
from ingest.hits.row import row
from ingest.hits.url import UNSTORABLE
from ingest.hotlog.deduplication import Post, Receipt
from ingest.hotlog.writer import RETRY_AFTER_S
from warehouse.control.projects import Project
from warehouse.errors import ProjectNotFound

JSON, NDJSON, TEXT = "application/json", "application/x-ndjson", "text/plain"
ON_LOOP_BYTES, ON_LOOP_HITS = 64 * 1024, 50
"""A larger body is read and classified in a thread, so that others are answered meanwhile. A user agent that is new
takes some 0.1 ms; to hand over to a thread and back takes as long."""
COUNT_AFTER_S = (0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)
"""When a beacon is counted that finds another worker counting: half a second of waits, in which others are answered.
With SQLite's own waiting for up to 5 s the whole worker stood still. A thread would cost each beacon some 0.1 ms."""
CHECK_AGAIN_S = 1.0
"""Duration of a body, in seconds, past which its key and project are checked again. The hot log refuses the rows of a
deleted project in any case. A revoked key works at most for this time and `cache.TTL_S`."""
PIXEL = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")


class Endpoint:
    """POST and OPTIONS /v1/analytics/{projectId}/hits.

    A class, because Starlette calls it as it is: around a function it puts a handler of exceptions of the route's own,
    which the app has already: some 6 microseconds of the busiest path.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await (_preflight(request) if request.method == "OPTIONS" else _post(request))
        await response(scope, receive, send)


async def _post(request: Request) -> Response:
    if header(request, b"authorization") is not None:
        return await _server_post(request, state_of(request))
    return await _beacon(request, state_of(request))


async def _preflight(request: Request) -> Response:
    """Whether a page of the request's origin may post JSON."""
    project = await state_of(request).project(request.path_params["projectId"])
    return Response(status_code=204, headers={"Allow": "POST, OPTIONS", **_cors(request, project, preflight=True)})


async def pixel(request: Request) -> Response:
    """GET .../pixel.gif: the beacon of a page without JavaScript. A HEAD counts nothing."""
    state = state_of(request)
    project = await state.project(request.path_params["projectId"])
    request.state.headers = cors = _cors(request, project)
    given = parameters.single(request, ("path", "url", "referrer", "eventId"))
    if request.method == "GET":
        await _limit(request, state)
        sent = BeaconHit(given.get("url"), given.get("path"), given.get("referrer"), given.get("eventId"))
        try:
            found = hit.beacon_hit(sent, _user_agent(request), datetime.now(UTC))
        except InvalidField as error:
            fault = Fault(error.reason, parameter=error.field)
            raise Problem("invalid-parameter", str(error), [fault]) from None
        await _store(state, _of_beacon(project, found), "beacon")
    return Response(PIXEL, media_type="image/gif", headers={"Cache-Control": "no-store", **cors})


async def _beacon(request: Request, state: State) -> Response:
    request.state.headers = _readable(request)
    project = await state.project(request.path_params["projectId"])
    cors = _cors(request, project)
    await _limit(request, state)
    body.media_type(request, (JSON, TEXT))
    began_s = time.monotonic()
    content = await body.read(request, post.BEACON_BYTES_MAX)
    if time.monotonic() - began_s > CHECK_AGAIN_S:
        await _require_same(state, project)
    found = post.parse_beacon(content, _user_agent(request), datetime.now(UTC))
    receipt = await _store(state, _of_beacon(project, found), "beacon")
    return Response(msgspec.json.encode(receipt), 202, cors, JSON)


async def _server_post(request: Request, state: State) -> Response:
    began_s = time.monotonic()
    bearer = await auth.key_for(request, state.keyring, request.path_params["projectId"], "ingest")
    key = idempotency_key(request)
    lines = body.media_type(request, (JSON, NDJSON)) == NDJSON
    content = await body.read(request, post.BODY_BYTES_MAX)
    if time.monotonic() - began_s > CHECK_AGAIN_S:
        bearer = await auth.key_for(request, state.keyring, bearer.project, "ingest")
    now = datetime.now(UTC)
    if _is_large(content, lines):
        sent = await run_in_threadpool(_read, bearer, content, lines, key, now)
    else:
        sent = _read(bearer, content, lines, key, now)
    metrics.count_rejected(sent.rejected)
    if not sent.rows:
        raise _all_rejected(sent.rejected, lines or content.lstrip().startswith(b"["))
    receipt = await _store(state, sent, "server")
    return Response(msgspec.json.encode(receipt), 202, media_type=JSON)


async def _require_same(state: State, project: Project) -> None:
    """Raise ProjectNotFound if the project was deleted, also if another one has its id now."""
    now = await state.project(project.id)
    if now.internal_id != project.internal_id:
        raise ProjectNotFound(project.id)


def _is_large(content: bytes, lines: bool) -> bool:
    """Whether it would hold up others to read it, by its bytes or its hits, as far as they can be told in no time."""
    return len(content) > ON_LOOP_BYTES or content.count(b"\n" if lines else b"{") > ON_LOOP_HITS


def _read(bearer: BearerKey, content: bytes, lines: bool, key: str | None, now: datetime) -> Post:
    """Parse a server's post and classify its hits."""
    parsed = post.parse_post(content, lines, now)
    received_us = microseconds(now)
    rows = [row(bearer.project, found, "server", received_us) for found in parsed.hits]
    fingerprint = hashlib.blake2b(content, digest_size=16).digest() if key else b""
    return Post(bearer.project, rows, parsed.rejected, key, fingerprint, bearer.internal_id)


def _of_beacon(project: Project, found: Hit) -> Post:
    rows = [row(project.id, found, "beacon", time.time_ns() // 1_000)]
    return Post(project.id, rows, [], internal_id=project.internal_id)


async def _store(state: State, sent: Post, source: str) -> Receipt:
    """Wait until its rows are on disk."""
    receipt = await state.hotlog.post(sent)
    metrics.count_hits(source, receipt)
    return receipt


def _all_rejected(rejected: list[post.Rejection], is_list: bool) -> Problem:
    """The problem that points at each fault, in the one object of the body or in a row of it."""
    faults = []
    for rejection in rejected:
        of_row = [rejection.index] if is_list else []
        of_field = [rejection.field] if rejection.field else []
        faults.append(Fault(rejection.reason, pointer=pointer(*of_row, *of_field)))
    members = {"accepted": 0, "duplicates": 0, "rejected": rejected}
    return Problem("invalid-body", "every hit was rejected; nothing was kept", faults, members=members)


async def _limit(request: Request, state: State) -> None:
    """Raises Problem `rate-limited` for an address past its beacons of the minute, and Overloaded as `_used` does."""
    retry_after_s = await _used(state, request.client.host if request.client else "")
    if retry_after_s is not None:
        detail = f"more than {state.settings.beacons_per_minute} beacons in a minute from one address"
        raise Problem("rate-limited", detail, headers={"Retry-After": str(retry_after_s)})


async def _used(state: State, address: str) -> int | None:
    """See `RateLimit.use`. Raises Overloaded, if other workers or a full disk do not let it count."""
    fault = ""
    for wait_s in COUNT_AFTER_S:
        if wait_s:
            await asyncio.sleep(wait_s)
        try:
            return state.rate_limit.use(address, time.time())
        except sqlite3.OperationalError as error:
            fault = str(error)
    raise Overloaded(f"beacons cannot be counted: {fault}", RETRY_AFTER_S)


def _readable(request: Request) -> dict[str, str]:
    """Return the headers that let a page of any origin read why its beacon failed: beacon.js logs the answer."""
    origin = header(request, b"origin")
    return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"} if origin else {}


def _cors(request: Request, project: Project, *, preflight: bool = False) -> dict[str, str]:
    """The headers that let a page of the request's origin read the answer.

    Raises:
        Problem: `origin-not-allowed`.
    """
    origin = header(request, b"origin")
    if origin is None:
        return {}
    if not project.allows(origin):
        detail = f"project {project.id!r} takes no beacons from the origin {origin!r}"
        raise Problem("origin-not-allowed", detail, headers={"Vary": "Origin"})
    allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    asked = {
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": "Content-Type",
        "Access-Control-Max-Age": "86400",
    }
    return {**allowed, **asked} if preflight else allowed


def _user_agent(request: Request) -> str:
    """The sender's own user agent; what cannot be stored of it, such as a tab, becomes U+FFFD.

    Raises:
        Problem: `invalid-header`, if it is too long.
    """
    given = header(request, b"user-agent") or ""
    if len(given) > hit.USER_AGENT_CHARACTERS_MAX:
        detail = f"the User-Agent has {len(given)} characters; at most {hit.USER_AGENT_CHARACTERS_MAX} are taken"
        raise Problem("invalid-header", detail)
    return given if given.isprintable() else UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", given)
