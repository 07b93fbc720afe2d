"""Static files, with a hash of their content in their address, so that browsers can cache them for ever."""

import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from api.http.problems import Problem

FOLDER = Path(__file__).parents[1] / "static"
PATH = "/static/"
_DIGITS = 12
_HEADERS = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file. `address` is its path below the service's prefix."""

    address: str
    content: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """Return the static files by their name within FOLDER."""
    result = {}
    for path in FOLDER.rglob("*"):
        if path.suffix in (".css", ".js", ".svg", ".png", ".ico"):
            content, name = path.read_bytes(), path.relative_to(FOLDER)
            digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
            address = PATH + name.with_suffix(f".{digest}{path.suffix}").as_posix()
            media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            result[name.as_posix()] = Asset(address, content, media_type)
    return result


@cache
def _by_address() -> dict[str, Asset]:
    return {asset.address: asset for asset in assets().values()}


async def serve(request: Request) -> Response:
    asset = _by_address().get(PATH + request.path_params["name"])
    if asset is None:
        raise Problem("not-found", "there is no static file at this path")
    return Response(asset.content, 200, _HEADERS, asset.media_type)


ROUTE = Route(PATH + "{name:path}", serve, methods=["GET"])
