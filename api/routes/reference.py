"""The OpenAPI document over HTTP. Its HTML pages are pages of the dashboard."""

from starlette.requests import Request
from starlette.responses import Response

from api.http.operation import JSON, Operation, Success
from api.state import state_of


async def openapi(request: Request) -> Response:
    """Respond to GET /openapi.json."""
    return Response(state_of(request).reference.json, media_type=JSON)


OPERATIONS = (
    Operation(
        "description",
        "GET",
        "/openapi.json",
        openapi,
        "Service",
        (Success(200, "OpenAPI 3.1.", {JSON: {"required": ["openapi", "info", "paths"]}}),),
        key="none",
    ),
    Operation("reference", "GET", "/docs", None, "Service", (Success(200, "HTML.", {"text/html": str}),), key="none"),
)
