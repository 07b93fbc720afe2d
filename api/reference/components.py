"""The components of the OpenAPI document: response headers, and JSON schemas of msgspec types and of problems."""

from typing import Any, get_origin

import msgspec

from api.http import cors, problems
from api.http.middleware import REQUEST_ID
from api.http.operation import Json, nullable

_TEMPLATE = "#/components/schemas/{name}"
_TEXT = {"type": "string"}
HEADERS: dict[str, tuple[str, Json]] = {
    "X-Request-Id": ("Id of the request in the log.", {"pattern": f"^{REQUEST_ID.pattern}$"}),
    "WWW-Authenticate": ("The fault of the key.", {"pattern": "^Bearer "}),
    "Retry-After": ("Seconds to wait.", {"type": "integer", "minimum": 1}),
    "ETag": ("Changes if the response changes.", {"pattern": '^W/"[0-9a-f]+"$'}),
    "X-As-Of": ("Moment of the counts, for the parameter `asOf`.", {"pattern": "^[0-9TZ:._-]+$"}),
    "Cache-Control": ("Which caches may store the response, and for how long.", _TEXT),
    "Allow": ("The methods of the path.", {"enum": ["POST, OPTIONS", "GET, HEAD, POST, OPTIONS"]}),
    "Location": ("URL or path of the job, or of the reference.", {"pattern": "/v2/agent/|docs$"}),
    "Link": ("URL of the next page, if there is one.", {"pattern": '^<[?]limit=[0-9]+&offset=[0-9]+>; rel="next"$'}),
    "RateLimit-Policy": ("Quotas, and their windows in seconds.", {"pattern": '^"create"|^"message"'}),
    "RateLimit": ("Remaining uses of the quotas, and seconds until it grows.", {"pattern": '^"create"|^"message"'}),
    "Accept-Encoding": ("Accepted encodings of a body, if that of the request is not accepted.", _TEXT),
    "Access-Control-Allow-Origin": ("The page's origin, if the request has one.", _TEXT),
    "Access-Control-Allow-Methods": ("Methods that the page's origin may use.", {"const": "POST"}),
    "Access-Control-Allow-Headers": ("Headers that the page's origin may send.", {"const": "Content-Type"}),
    "Access-Control-Max-Age": ("TTL of the preflight response, in seconds.", {"type": "integer", "minimum": 1}),
}
"""Description and JSON schema of each response header."""
OPTIONAL = {"Link", "Accept-Encoding", *cors.HEADERS}
"""Headers that a response may lack."""


class Schemas:
    """Schemas of the types that the operations refer to, by name."""

    def __init__(self) -> None:
        self.by_name: Json = {"Problem": _problem(), "RejectedPost": _rejected_post()}
        self.schema(problems.Fault)

    def schema(self, part: Any) -> Any:
        """Return the JSON schema of `Content.schema`, with references to the structs in it."""
        if isinstance(part, tuple):
            return {"anyOf": [self.schema(each) for each in part]}
        if isinstance(part, dict):
            return {name: self.schema(each) for name, each in part.items()}
        if not isinstance(part, type) and get_origin(part) is None:  # a value in a JSON schema
            return part
        (schema,), components = msgspec.json.schema_components([part], ref_template=_TEMPLATE)
        self.by_name |= {name: _readable(name, component) for name, component in components.items()}
        return schema


def _readable(name: str, schema: Json) -> Json:
    """Return the schema of a struct, with optional fields in the form of `nullable`, and with rules between fields."""
    properties = {field: nullable(each) for field, each in schema["properties"].items()}
    rules = {"oneOf": [_exactly("path", "url"), _exactly("url", "path")]} if name in ("BeaconHit", "ServerHit") else {}
    return {**schema, "properties": properties, **rules}


def _exactly(required: str, other: str) -> Json:
    """Return the schema of an object with one of two fields."""
    return {"required": [required], "properties": {required: _TEXT, other: {"type": "null"}}}


def _problem() -> Json:
    types = [f"/docs#{kind}" for kind in problems.KINDS]
    fields = {
        "type": {"description": "Link to the advice for this kind of problem.", "enum": types},
        "title": _TEXT | {"description": "Name of the kind."},
        "status": {"description": "HTTP status.", "type": "integer"},
        "detail": _TEXT | {"description": "The fault of this request."},
        "requestId": _TEXT | {"description": "Id of the request in the log."},
        "errors": {"description": "Every fault of the request.", "type": "array", "items": ref("Fault")},
    }
    required = ["type", "title", "status", "detail", "requestId"]
    return {"type": "object", "description": "An error response.", "properties": fields, "required": required}


def _rejected_post() -> Json:
    receipt = {
        "accepted": {"description": "No hit.", "const": 0},
        "duplicates": {"description": "No hit.", "const": 0},
        "rejected": {"description": "Every hit.", "type": "array", "items": ref("Rejection")},
    }
    description = "A problem. If every hit of a post was rejected, it has the members of a receipt."
    return {**ref("Problem"), "description": description, "properties": receipt}


def headers() -> Json:
    """Return the descriptions of all response headers, by name."""
    return {
        name: {"required": name not in OPTIONAL, "description": description, "schema": schema}
        for name, (description, schema) in HEADERS.items()
    }


def ref(name: str) -> Json:
    return {"$ref": _TEMPLATE.format(name=name)}
