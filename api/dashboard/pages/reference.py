"""The reference of the API: its first page with the kinds of problems, and a page for the operations of each tag."""

import json
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import Visit
from api.http.operation import Json
from api.http.problems import KINDS, MEDIA_TYPE
from api.reference import prose
from api.reference.openapi import TAGS
from api.reports.records import REPORTS

KEYS = {"none": "No API key.", "required": "Requires an API key.", "optional": "With an API key, or without one."}
_LIMITS = {
    "minimum": "at least {:,}",
    "maximum": "at most {:,}",
    "maxLength": "at most {:,} characters",
    "default": "default {}",
}
_PROBLEM = {
    "type": "/docs#invalid-parameter",
    "title": KINDS["invalid-parameter"].title,
    "status": KINDS["invalid-parameter"].status,
    "detail": "limit must be an integer from 1 to 250, not '1000'",
    "requestId": "8f14e45fceea167a",
    "errors": [{"detail": "must be an integer from 1 to 250, not '1000'", "parameter": "limit"}],
}


def show(visit: Visit) -> Response:
    """Respond to GET /docs, or to the page of a tag."""
    reference = visit.state.reference
    address = str(visit.request.base_url).rstrip("/")
    tag = next((each for each in TAGS if visit.request.url.path.endswith(path(each))), None)
    schemas = reference.document["components"]["schemas"]
    return render.page(
        visit,
        f"reference/{'section' if tag else 'index'}.html",
        title=f"{TAGS[tag]}: HTTP API" if tag else "HTTP API",
        tags=TAGS,
        chosen=tag,
        path=path,
        by_tag={name: [each for each in reference.operations if each.tag == name] for name in TAGS},
        document=reference.document,
        introduction=prose.rendered("introduction.md"),
        shared={
            text: [each for each in REPORTS if text in prose.of(each.id).description]
            for text in map(prose.rendered, prose.SHARED)
        },
        common=_common(reference.document) if tag == "Read" else [],
        texts_of=prose.of,
        keys=KEYS,
        kinds=KINDS,
        problem=_json(_PROBLEM),
        markdown=lambda text: prose.blocks(reference.addressed(text, address)),
        inline=prose.inline,
        addressed=lambda text: reference.addressed(text, address),
        structs=lambda content: {name: schemas[name] for name in _referenced(content, schemas)},
        type_of=_type,
        limits=_limits,
        problems_of=_problems,
        example=_example,
    )


def path(tag: str) -> str:
    return f"/docs/{tag.lower()}"


def _common(document: Json) -> list[Json]:
    """Return the parameters that several reports have."""
    paths = [document["paths"][each.operation.path] for each in REPORTS]
    every = [parameter for path in paths for parameter in path["get"]["parameters"]]
    return [each for index, each in enumerate(every) if every.count(each) > 2 and each not in every[:index]]


def _referenced(part: Any, schemas: Json) -> Iterator[str]:
    """Yield the names of the schemas that a part of the document refers to, directly or through another schema."""
    if isinstance(part, list):
        for each in part:
            yield from _referenced(each, schemas)
    elif isinstance(part, dict):
        for key, each in part.items():
            if key == "$ref":
                name = each.rpartition("/")[2]
                yield name
                yield from _referenced(schemas[name], schemas)
            elif key not in ("example", "examples"):
                yield from _referenced(each, schemas)


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if schema.get("type") == "array":
        return f"array of {_type(schema['items'])}"
    kinds = schema.get("type", "string")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _limits(schema: Json) -> str:
    """Return the limits of a value, and the values of a closed set."""
    limits = [text.format(schema[name]) for name, text in _LIMITS.items() if schema.get(name) is not None]
    choices = [f"one of {', '.join(map(str, schema['enum']))}"] if "enum" in schema else []
    return "; ".join(choices + limits)


def _problems(response: Json) -> list[str]:
    schema = response.get("content", {}).get(MEDIA_TYPE, {}).get("schema")
    return [uri.partition("#")[2] for uri in schema["properties"]["type"]["enum"]] if schema else []


def _example(responses: Json) -> str | None:
    """Return the first example of the successful response."""
    content = next(iter(responses.values())).get("content", {})
    example = next((each["example"] for each in content.values() if "example" in each), None)
    return example if example is None or isinstance(example, str) else _json(example)


def _json(value: object) -> str:
    return json.dumps(value, indent=2)


PAGES = tuple(Page("GET", each, show, Access.PUBLIC) for each in ("/docs", *map(path, TAGS)))
