"""Posts of page views and of events: by a server with an API key, or by a page without one (a beacon).

A response with the status 202 is sent once the hits are on disk.
"""

import hashlib
import time
from contextlib import suppress
from functools import partial
from typing import Annotated, NamedTuple

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api import metrics
from api.accounts.keys import BearerKey
from api.http import auth, body, cors, operation
from api.http.headers import header, idempotency_key
from api.http.operation import JSON, NDJSON, TEXT, Operation, Success
from api.http.problems import Fault, Problem, pointer
from api.routes import beacon
from api.state import State, state_of
from ingest.hits import body as post
from ingest.hits.body import Kind, Rejection
from ingest.hits.row import Site, rows
from ingest.hotlog.deduplication import TABLES, Post, Receipt
from ingest.visitors.address_free import address_free
from ingest.visitors.visitor import SaltsOf, SaltUnread

ON_LOOP_BYTES_MAX, ON_LOOP_HITS_MAX = 64 * 1024, 50
"""Maximum size and number of hits of a body that is parsed on the event loop. A larger body is parsed in a thread. The
switch to a thread and back takes 0.1 ms, as long as the classification of one new user agent."""


class Endpoint:
    """The handler of POST and OPTIONS /v1/analytics/{projectId}/hits, or /events.

    Starlette wraps a function in an exception handler of its own, which adds 6 µs per request, but calls an object
    directly; the app handles exceptions anyway.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if scope["method"] == "OPTIONS":
            response = await beacon.preflight(request, self._kind)
        elif header(request, b"authorization") is None:
            response = await beacon.receive(request, self._kind)
        else:
            response = await _server_post(request, state_of(request), self._kind)
        await response(scope, receive, send)


async def _server_post(request: Request, state: State, kind: Kind) -> Response:
    began_s = time.monotonic()
    bearer = await auth.key_for(request, state.keyring, request.path_params["projectId"], "ingest")
    key = idempotency_key(request)
    is_ndjson = body.media_type(request, (JSON, NDJSON)) == NDJSON
    content = await body.read(request, post.BODY_BYTES_MAX)
    if time.monotonic() - began_s > body.RECHECK_AFTER_S:
        bearer = await auth.key_for(request, state.keyring, bearer.project, "ingest")
    site = Site((await state.project(bearer.project)).hosts, state.settings.country_database)
    parse = partial(_parse, state, bearer, site, _Sent(content, is_ndjson, key, kind))
    parsed = None
    hits = content.count(b"\n" if is_ndjson else b"{")  # an estimate
    if len(content) <= ON_LOOP_BYTES_MAX and hits <= ON_LOOP_HITS_MAX:
        with suppress(SaltUnread):
            parsed = parse(state.intake.salts.cached)
    if parsed is None:
        parsed = await to_thread.run_sync(parse, state.intake.salts.of, limiter=body.LARGE)
    if parsed.rejected:
        metrics.count_rejected(parsed.rejected)
    if not parsed.rows:
        raise _all_rejected(kind, parsed.rejected, is_ndjson or content.lstrip().startswith(b"["))
    receipt = await state.intake.hotlog.post(parsed)
    metrics.count_hits(kind, "server", receipt)
    return Response(msgspec.json.encode(receipt), 202, media_type=JSON)


class _Sent(NamedTuple):
    """The body of a post, with its Idempotency-Key."""

    content: bytes
    is_ndjson: bool
    key: str | None
    kind: Kind


def _parse(state: State, bearer: BearerKey, site: Site, sent: _Sent, salts_of: SaltsOf) -> Post:
    """Parse a server's post, and classify and verify its hits."""
    content, is_ndjson, key, kind = sent
    now_us = time.time_ns() // 1_000
    parsed = post.parse_post(content, is_ndjson, now_us, kind)
    stored = rows(bearer.project, parsed.hits, now_us, state.intake.verifier, salts_of, site)
    cut = metrics.count_cut(parsed.hits)
    person = b"" if kind is post.HITS else kind.name.encode()  # as in earlier releases, which had hits alone
    unkeyed = b"" if key is None else hashlib.blake2b(content, digest_size=16, person=person).digest()
    keyed = partial(hashlib.blake2b, digest_size=16, key=state.intake.secret)
    earlier = (unkeyed, keyed(unkeyed).digest())
    # Without addresses: with the key, and the rest of the body from `hits`, one could be found by trying all.
    fingerprint = unkeyed and keyed(address_free(content), person=person).digest()
    project, internal_id, table = bearer.project, bearer.internal_id, TABLES[kind.name]
    return Post(project, stored, parsed.rejected, key, fingerprint, internal_id, earlier, cut, table)


def _all_rejected(kind: Kind, rejected: list[Rejection], is_list: bool) -> Problem:
    """Return the problem with a JSON pointer to each fault, in the only object of the body or in one of its rows."""
    faults = []
    for rejection in rejected:
        index = [rejection.index] if is_list else []
        field = [rejection.field] if rejection.field else []
        faults.append(Fault(rejection.reason, pointer=pointer(*index, *field)))
    members = {"accepted": 0, "duplicates": 0, "rejected": rejected}
    return Problem("invalid-body", f"every {kind.name} was rejected; nothing was stored", faults, members=members)


def _operations(kind: Kind, send: str, preflight: str) -> tuple[Operation, ...]:
    path, endpoint = f"/v1/analytics/{{projectId}}/{kind.name}s", Endpoint(kind)
    beacon, server = kind.beacon.type, kind.server.type
    many = Annotated[list[server], msgspec.Meta(min_length=1, max_length=post.HITS_MAX)]  # type: ignore[valid-type]
    allowed = Success(204, "The page may send if the response has its origin.", headers=("Allow", *cors.HEADERS))
    return (
        Operation(
            send,
            "POST",
            path,
            endpoint,
            "Send",
            parameters=(operation.idempotency_key("post"),),
            body={JSON: (server, many, beacon), NDJSON: str, TEXT: {"type": "string", "contentSchema": beacon}},
            responses=(Success(202, "Stored.", {JSON: Receipt}, ("Access-Control-Allow-Origin",)),),
            problems="invalid-body invalid-header unauthenticated forbidden origin-not-allowed not-found body-too-slow"
            " body-too-large unsupported-media-type idempotency-mismatch rate-limited overloaded",
            problem_schemas={400: "RejectedPost"},
            key="optional",
        ),
        Operation(
            preflight,
            "OPTIONS",
            path,
            endpoint,
            "Send",
            responses=(allowed,),
            problems="origin-not-allowed not-found",
            key="none",
        ),
    )


OPERATIONS = (
    *_operations(post.HITS, "sendHits", "mayPageSend"),
    *_operations(post.EVENTS, "sendEvents", "mayPageSendEvents"),
)
