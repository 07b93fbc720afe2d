"""The OpenAPI 3.1 description of the HTTP API, assembled from the records beside the handlers."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from api.http import problems
from api.http.operation import Json, Operation, Parameter, Success
from api.reference import prose
from api.reference.components import Schemas, headers, ref
from api.reference.prose import Prose
from warehouse.control import projects

TAGS = {"Send": "Send page views", "Read": "Read counts", "Jobs": "Agent jobs", "Service": "Goals, rules and service"}
"""Heading of each tag, in the order of the page."""
PATH_PARAMETERS: dict[str, Json] = {
    "projectId": {
        "description": "Id of the project.",
        "schema": {"type": "string", "pattern": f"^{projects.ID.pattern}$"},
        "example": "demo",
    },
    "id": {"description": "Id of the job or goal.", "schema": {"type": "string", "minLength": 1}},
}
PROBLEM_HEADERS = {
    "unauthenticated": "WWW-Authenticate",
    "unsupported-media-type": "Accept-Encoding",
    "rate-limited": "Retry-After",
    "overloaded": "Retry-After",
}
"""Header of the responses with a kind of problem."""
SECURITY: dict[str, list[Json]] = {"required": [{"bearer": []}], "optional": [{}, {"bearer": []}], "none": []}


def description(operations: Iterable[Operation]) -> Json:
    """Return the OpenAPI document of these operations."""
    schemas = Schemas()
    paths: Json = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Readership",
            "version": version("readership"),
            "summary": "Who reads your site: people, or AI?",
            "description": prose.rendered("introduction.md"),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": heading} for name, heading in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "An API key."}},
            "headers": headers(),
            "schemas": schemas.by_name,
        },
    }


def _operation(operation: Operation, schemas: Schemas) -> Json:
    texts = prose.of(operation.id)
    in_path = [
        {"name": name, "in": "path", "required": True, **PATH_PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    successes = {str(each.status): _success(each, schemas, texts) for each in operation.responses}
    body = {"required": True, "content": _content("body", operation.body, schemas, texts)}
    return {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": texts.summary,
        "description": texts.description,
        "security": SECURITY[operation.key],
        "parameters": [*in_path, *map(_parameter, operation.parameters)],
        "responses": successes | _problems(operation),
        **({"requestBody": body} if operation.body else {}),
    }


def _parameter(parameter: Parameter) -> Json:
    example = {} if parameter.example is None else {"example": parameter.example}
    schema = {"type": "string"} | parameter.schema
    described = {"name": parameter.name, "in": parameter.place, "description": parameter.description}
    required = {"required": True} if parameter.is_required else {}
    return {**described, **required, "schema": schema, **example}


def _success(success: Success, schemas: Schemas, texts: Prose) -> Json:
    content = {"content": _content(str(success.status), success.content, schemas, texts)} if success.content else {}
    return {"description": success.description, "headers": _headers(success.headers), **content}


def _content(place: str, content: Mapping[str, Any], schemas: Schemas, texts: Prose) -> Json:
    return {
        media_type: {"schema": schemas.schema(schema), **texts.examples.get((place, media_type), {})}
        for media_type, schema in content.items()
    }


def _headers(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *names)}


def _problems(operation: Operation) -> Json:
    """Return the error responses of an operation, by status."""
    kinds = [*operation.problems.split(), "internal"]
    responses = {}
    for status in sorted({problems.KINDS[kind].status for kind in kinds}):
        same = [kind for kind in kinds if problems.KINDS[kind].status == status]
        schema = ref(operation.problem_schemas.get(status, "Problem"))
        types = {"type": {"enum": [f"/docs#{kind}" for kind in same]}, "status": {"const": status}}
        names = [PROBLEM_HEADERS[kind] for kind in same if kind in PROBLEM_HEADERS]
        responses[str(status)] = {
            "description": " ".join(f"{problems.KINDS[kind].title}. {problems.KINDS[kind].advice}" for kind in same),
            "headers": _headers([*names, *operation.problem_headers.get(status, ())]),
            "content": {problems.MEDIA_TYPE: {"schema": {**schema, "properties": types}}},
        }
    return responses
