"""The reference over HTTP: the OpenAPI document and its HTML page."""

import base64
import hashlib

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.http.operation import JSON, Operation, Success
from api.reference.page import TEMPLATE
from api.state import state_of

_STYLE = TEMPLATE.partition("<style>")[2].partition("</style>")[0]
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


async def openapi(request: Request) -> Response:
    """Respond to GET /openapi.json."""
    return Response(state_of(request).reference.json, media_type=JSON)


async def page(request: Request) -> Response:
    """Respond to GET /docs."""
    return HTMLResponse(state_of(request).reference.html(str(request.base_url).rstrip("/")), headers=_HEADERS)


OPERATIONS = (
    Operation(
        "description",
        "GET",
        "/openapi.json",
        openapi,
        "Service",
        responses=(Success(200, "OpenAPI 3.1.", {JSON: {"required": ["openapi", "info", "paths"]}}),),
        key="none",
    ),
    Operation(
        "reference",
        "GET",
        "/docs",
        page,
        "Service",
        responses=(Success(200, "HTML.", {"text/html": str}),),
        key="none",
    ),
)
