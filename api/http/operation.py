"""The record that describes an operation. Each record is beside its handler in `api.routes`.

`api.app` creates the routes from the records, and `api.reference` the OpenAPI document. The limits and descriptions of
JSON fields are on the msgspec types of the bodies.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from api.http.headers import IDEMPOTENCY_KEY_CHARACTERS_MAX

Method = Literal["GET", "POST", "DELETE", "OPTIONS"]
JSON, NDJSON, TEXT = "application/json", "application/x-ndjson", "text/plain"
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
LIMIT_DEFAULT, LIMIT_MAX = 50, 250
"""Numbers of items on a page."""
OFFSET_MAX = 2**31
"""Maximum offset of prompts and of log entries, which the database has to skip."""
ADDRESS = "http://127.0.0.1:8000"
"""Address in the samples. The HTML page shows the service's own address instead."""

Json = dict[str, Any]
Tag = Literal["Send", "Read", "Jobs", "Service"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query or a header."""

    name: str
    description: str
    schema: Json = field(default_factory=dict)
    """JSON schema. The default type is a string."""
    place: Literal["query", "header"] = "query"
    example: str | None = None
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Success:
    """A response that is not an error."""

    status: int
    description: str
    content: Mapping[str, Any] = field(default_factory=dict)
    """Schema of the body by media type: a type that msgspec describes, a tuple of alternative types, or a JSON schema,
    in which a value may be a type."""
    headers: tuple[str, ...] = ()
    """Names of the headers in addition to X-Request-Id; `api.reference.components` describes them."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path, with its handler and its part of the reference. `api.reference.prose` has its texts."""

    id: str
    method: Method
    path: str
    handler: Callable[..., Any] | None
    """None for a page of the dashboard, which has its own route."""
    tag: Tag
    responses: tuple[Success, ...]
    problems: str = ""
    """Kinds of problem, separated by spaces. Every operation can also return `internal`."""
    problem_schemas: Mapping[int, str] = field(default_factory=dict)
    """Names of schemas for problems, by status, in place of `Problem`."""
    problem_headers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names of additional headers of problems, by status."""
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    """Schema of the request's body by media type, as in `Success`."""
    key: Literal["required", "optional", "none"] = "required"


def field_parameters(struct: type[msgspec.Struct], **examples: str) -> tuple[Parameter, ...]:
    """Return a query parameter for each field of a struct, with its description and limits."""
    _, components = msgspec.json.schema_components([struct])
    fields = components[struct.__name__]["properties"].items()
    result = []
    for name, described in fields:
        schema = nullable(described)
        limits = {key: value for key, value in schema.items() if key not in ("type", "description")}
        result.append(Parameter(name, schema["description"], limits, example=examples.get(name)))
    return tuple(result)


def nullable(field: Json) -> Json:
    """Return the schema of an optional field with `null` as one of its types, not as an alternative schema."""
    if "anyOf" not in field:
        return field
    value, null = field["anyOf"]
    rest = {key: each for key, each in field.items() if key not in ("anyOf", "default")}
    return {**rest, **value, "type": [value["type"], null["type"]]}


def idempotency_key(item: str) -> Parameter:
    """Return the Idempotency-Key of a request that stores an item."""
    schema = {"minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARACTERS_MAX}
    return Parameter(
        "Idempotency-Key",
        f"A key that is unique to the {item}: the {item} is stored once, also if the request is repeated.",
        schema,
        "header",
    )


def paging(
    items: str, limit_max: int = LIMIT_MAX, limit: int = LIMIT_DEFAULT, **offset_limits: int
) -> tuple[Parameter, ...]:
    """Return the parameters `limit` and `offset` of pages of `items`; `offset_limits` extend the schema of `offset`."""
    limits = {"type": "integer", "minimum": 1, "maximum": limit_max, "default": limit}
    return (
        Parameter("limit", f"{items} per page.", limits),
        Parameter("offset", f"{items} to skip.", {"type": "integer", "minimum": 0, "default": 0, **offset_limits}),
    )


IF_NONE_MATCH = Parameter("If-None-Match", "The `ETag` of an earlier response.", place="header")
NOT_MODIFIED = Success(304, "The response with this `ETag` is still current.", headers=("ETag", "Cache-Control"))
HasMore = Annotated[bool, Meta(description="Whether more items follow this page.")]
"""Type of a field that all paged responses have."""
