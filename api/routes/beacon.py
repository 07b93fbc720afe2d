"""Page views from pages, without an API key: the beacon, its preflight request and the pixel."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from api import metrics
from api.http import body, cors, parameters
from api.http.cors import OriginRefused
from api.http.headers import header
from api.http.operation import JSON, TEXT, Operation, Success, field_parameters
from api.http.problems import Fault, Problem
from api.http.rate_limit import NETWORK_FACTOR, PROJECT_FACTOR
from api.state import State, state_of
from ingest.errors import InvalidField
from ingest.hits import body as post
from ingest.hits import hit
from ingest.hits.body import Kind
from ingest.hits.evidence import Evidence, signed_evidence
from ingest.hits.hit import BeaconHit, Hit
from ingest.hits.row import Site, row
from ingest.hits.url import UNSTORABLE
from ingest.hotlog.deduplication import TABLES, Post, Receipt
from ingest.places import country
from ingest.places.language import language
from ingest.visitors.visitor import SaltUnread
from warehouse.control.projects import Project
from warehouse.errors import ProjectNotFound

PIXEL = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")
"""A transparent GIF of 1 x 1 pixel."""
FIELDS = ("url", "path", "referrer", "eventId", "timeZone")
"""Parameters of the pixel, in the order of the fields of BeaconHit."""


async def preflight(request: Request, kind: Kind) -> Response:
    """Respond to a browser that asks whether a page of an origin may post JSON."""
    project = await state_of(request).project(request.path_params["projectId"])
    allowed = "POST, OPTIONS" if kind is post.HITS else "GET, HEAD, POST, OPTIONS"
    return Response(status_code=204, headers={"Allow": allowed, **cors.preflight(request, project)})


async def receive(request: Request, kind: Kind) -> Response:
    """Store the page view or the event of a beacon."""
    state = state_of(request)
    request.state.headers = cors.readable(request)
    project = await state.project(request.path_params["projectId"])
    with _recorded(state, project):
        headers = cors.allowed(request, project)
    await _limit_rate(request, state, project)
    body.media_type(request, (JSON, TEXT))
    began_s = time.monotonic()
    content = await body.read(request, post.BEACON_BYTES_MAX, budget=body.ANONYMOUS)
    if time.monotonic() - began_s > body.RECHECK_AFTER_S:
        await _require_unchanged(state, project)
    view = _view(request, project, post.decode_beacon(content, kind), kind)
    receipt = await _store(state, project, view, kind)
    return Response(msgspec.json.encode(receipt), 202, headers, JSON)


async def pixel(request: Request) -> Response:
    """Respond to GET .../pixel.gif, the beacon of a page without JavaScript. A HEAD request counts nothing."""
    state = state_of(request)
    project = await state.project(request.path_params["projectId"])
    with _recorded(state, project):
        request.state.headers = headers = cors.allowed(request, project)
        cors.require_own_page(request, project)
    query = parameters.single(request, FIELDS)
    if request.method == "GET":
        sent = BeaconHit(*map(query.get, FIELDS))
        try:
            await count(request, project, sent)
        except InvalidField as error:
            fault = Fault(error.reason, parameter=error.field)
            raise Problem("invalid-parameter", str(error), [fault]) from None
    return Response(PIXEL, media_type="image/gif", headers={"Cache-Control": "no-store", **headers})


async def count(request: Request, project: Project, sent: BeaconHit) -> None:
    """Store a page view of the browser that sends the request, and count it as a beacon of the client's address.

    Raises:
        InvalidField: a field of `sent` is invalid.
        Problem: `rate-limited`, `origin-not-allowed` for the URL of another site, or `invalid-header` if the user agent
            is too long.
        Overloaded: see `RateLimit.count` and `HotLog.post`.
    """
    state = state_of(request)
    await _limit_rate(request, state, project)
    await _store(state, project, _view(request, project, sent))


def _view(request: Request, project: Project, sent: BeaconHit, kind: Kind = post.HITS) -> Hit:
    """Return the hit that a request sends, with the user agent, the time and the evidence of the request."""
    view = kind.of_beacon(sent, _user_agent(request), datetime.now(UTC), evidence_of(request))
    with _recorded(state_of(request), project):
        cors.require_own_url(project, sent.url)
    return view


@contextmanager
def _recorded(state: State, project: Project) -> Iterator[None]:
    """Record the origin of a beacon that is refused, for the page *Set up*."""
    try:
        yield
    except OriginRefused as refused:
        if refused.origin is not None:
            state.intake.refused_origins.add(project.id, refused.origin, int(time.time()))
        raise


async def _require_unchanged(state: State, project: Project) -> None:
    """Raise ProjectNotFound if the project was deleted, also if it was created again."""
    now = await state.project(project.id)
    if now.internal_id != project.internal_id:
        raise ProjectNotFound(project.id)


async def _store(state: State, project: Project, view: Hit, kind: Kind = post.HITS) -> Receipt:
    """Wait until the row of a beacon is on disk."""
    site = Site(project.hosts, state.settings.country_database)
    to_row = partial(row, project.id, view, "beacon", time.time_ns() // 1_000, state.intake.verifier, site=site)
    try:
        stored = to_row(state.intake.salts.cached)
    except SaltUnread:
        stored = await to_thread.run_sync(to_row, state.intake.salts.of)
    cut = metrics.count_cut([view])
    sent = Post(project.id, [stored], [], internal_id=project.internal_id, cut=cut, spec=TABLES[kind.name])
    receipt = await state.intake.hotlog.post(sent)
    metrics.count_hits(kind, "beacon", receipt)
    return receipt


async def _limit_rate(request: Request, state: State, project: Project) -> None:
    """Count a beacon of the client's address and network, and of the project. Raises Problem `rate-limited`."""
    retry_after_s = await state.intake.rate_limit.count(_address(request) or "", project.id)
    if retry_after_s is not None:
        limit = state.settings.beacons_per_minute
        detail = (
            f"more than {limit} beacons in a minute from one address, {NETWORK_FACTOR * limit} from one IPv6 /56"
            f" network, or {PROJECT_FACTOR * limit} for the project (READERSHIP_BEACONS_PER_MINUTE)"
        )
        raise Problem("rate-limited", detail, headers={"Retry-After": str(retry_after_s)})


def _address(request: Request) -> str | None:
    """Return the client's address: that of the connection, or the one that a trusted proxy names."""
    return request.client.host if request.client else None


def evidence_of(request: Request) -> Evidence:
    """Return the evidence of a beacon: the client's address, country and language, and the headers of a signed request.

    The headers of any other beacon are no evidence: `Accept` and the others belong to a fetch by the page, not to the
    request for the page.
    """
    evidence = Evidence(_address(request))
    if header(request, b"signature-input") is not None:
        evidence = signed_evidence(evidence.address, request.scope["headers"], _public_url(request), request.method)
    name = state_of(request).settings.country_header
    code = header(request, name.encode()) if name else None
    return evidence._replace(country=country.known(code), language=language(header(request, b"accept-language")))


def _public_url(request: Request) -> str | None:
    """Return the URL of the request under the setting `base_url`; None without the setting.

    A signature is valid for one host, and the header Host does not prove which host this service has: a client could
    repeat a request that was signed for another site.
    """
    base_url = state_of(request).settings.base_url
    return f"{base_url}{request.url.path}{'?' if request.url.query else ''}{request.url.query}" if base_url else None


def _user_agent(request: Request) -> str:
    """Return the user agent, with U+FFFD for characters that cannot be stored. Raises Problem if it is too long."""
    user_agent = header(request, b"user-agent") or ""
    if len(user_agent) > hit.USER_AGENT_CHARACTERS_MAX:
        detail = f"the User-Agent has {len(user_agent)} characters; the limit is {hit.USER_AGENT_CHARACTERS_MAX}"
        raise Problem("invalid-header", detail)
    return user_agent if user_agent.isprintable() else UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", user_agent)


OPERATIONS = (
    Operation(
        "sendPixel",
        "GET",
        "/v1/analytics/{projectId}/pixel.gif",
        pixel,
        "Send",
        parameters=field_parameters(BeaconHit, path="/docs/hello"),
        responses=(
            Success(
                200,
                "One transparent pixel; the view is stored.",
                {"image/gif": {"type": "string", "contentMediaType": "image/gif"}},
                ("Cache-Control",),
            ),
        ),
        problems="invalid-parameter origin-not-allowed not-found rate-limited overloaded",
        key="none",
    ),
)
