"""The OpenAPI 3.1 description of the HTTP API, assembled from the records beside the handlers."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from api.http import problems
from api.http.operation import Content, Json, Operation, Parameter, Success
from api.reference.components import Schemas, headers, ref
from warehouse.control import projects

INTRODUCTION = f"""\
Readership shows the owner of a site who reads each page: people or AI. A site sends its page views. Readership
classifies each of them as a view by a human, by an AI agent (`ai`: GPTBot, Claude-User and others) or by another bot (a
search engine, a monitor, a script), stores it, and exports counts. A site is a project; `projectId` is its id.

- An API key is sent as `Authorization: Bearer <key>` and is valid for one project. The scope `read` allows exports,
  `ingest` allows posts of hits, and `write` allows every operation. Use keys on servers only: the pages of a site send
  their views without a key.
- A key with the scope `write` can also start agent jobs: a coding agent works on a prompt, and the service opens a pull
  request with its changes. Give a web server a key with the scope `ingest`.
- Every response has an `X-Request-Id`: that of the request, if it is 1 to 64 letters, digits and `._-`, or a new one.
- Every error is an RFC 9457 problem, `{problems.MEDIA_TYPE}`; its `type` links to advice.
- Operations with GET also accept HEAD. Any other method gets a `405` with the allowed methods in `Allow`. All times are
  UTC.
"""
TAGS = {
    "Send": "Send page views",
    "Read": "Read counts",
    "Jobs": "Agent jobs",
    "Service": "Service",
}
"""Heading of each tag, in the order of the page."""
PATH_PARAMETERS: dict[str, Json] = {
    "projectId": {
        "description": "Id of the project.",
        "schema": {"type": "string", "pattern": f"^{projects.ID.pattern}$"},
        "example": "demo",
    },
    "id": {"description": "Id of the job.", "schema": {"type": "string", "minLength": 1}},
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
            "description": INTRODUCTION,
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
    in_path = [
        {"name": name, "in": "path", "required": True, **PATH_PARAMETERS[name]}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    successes = {str(each.status): _success(each, schemas) for each in operation.responses}
    body = {"requestBody": {"required": True, "content": _content(operation.body, schemas)}} if operation.body else {}
    return {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "security": SECURITY[operation.key],
        "parameters": [*in_path, *map(_parameter, operation.parameters)],
        "responses": successes | _problems(operation),
        **body,
    }


def _parameter(parameter: Parameter) -> Json:
    example = {} if parameter.example is None else {"example": parameter.example}
    schema = {"type": "string"} | parameter.schema
    described = {"name": parameter.name, "in": parameter.place, "description": parameter.description}
    required = {"required": True} if parameter.is_required else {}
    return {**described, **required, "schema": schema, **example}


def _success(success: Success, schemas: Schemas) -> Json:
    content = {"content": _content(success.content, schemas)} if success.content else {}
    return {"description": success.description, "headers": _headers(success.headers), **content}


def _content(content: Mapping[str, Content], schemas: Schemas) -> Json:
    return {media_type: _body(body, schemas) for media_type, body in content.items()}


def _body(content: Content, schemas: Schemas) -> Json:
    example = {} if content.example is None else {"example": content.example}
    examples = {name: {"value": value} for name, value in content.examples.items()}
    return {"schema": schemas.schema(content.schema), **example, **({"examples": examples} if examples else {})}


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
