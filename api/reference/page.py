"""The HTML page of the OpenAPI document."""

import json
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from api.http.operation import Json, Operation
from api.http.problems import KINDS, MEDIA_TYPE, Kind
from api.reference import html, prose
from api.reference.html import inline, pre, table
from api.reference.openapi import TAGS
from api.reference.prose import Prose

TEMPLATE = (Path(__file__).parent / "reference.html").read_text(encoding="utf-8")
_KEYS = {
    "none": "No API key.",
    "required": "Requires an API key.",
    "optional": "With an API key, or without one.",
}
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


def render(document: Json, operations: Sequence[Operation]) -> str:
    """Return the page of an OpenAPI document, with the samples of its operations."""
    by_tag = {tag: [each for each in operations if each.tag == tag] for tag in TAGS}
    return Template(TEMPLATE).substitute(
        version=escape(document["info"]["version"]),
        introduction=html.prose(document["info"]["description"]),
        contents="".join(_contents(tag, group) for tag, group in by_tag.items()),
        operations="".join(
            f"<h2>{escape(TAGS[tag])}</h2>{''.join(_operation(each, document) for each in group)}"
            for tag, group in by_tag.items()
        ),
        problem=pre(json.dumps(_PROBLEM, indent=2)),
        problem_contents="".join(f'<li><a href="#{kind}">{kind}</a></li>' for kind in KINDS),
        problems="".join(_problem(name, kind) for name, kind in KINDS.items()),
    )


def _contents(tag: str, operations: list[Operation]) -> str:
    links = "".join(f'<li><a href="#{each.id}">{escape(prose.of(each.id).summary)}</a></li>' for each in operations)
    return f"<strong>{escape(tag)}</strong><ul>{links}</ul>"


def _operation(operation: Operation, document: Json) -> str:
    texts = prose.of(operation.id)
    method, schemas = operation.method, document["components"]["schemas"]
    described = document["paths"][operation.path][method.lower()]
    return f"""
<article id="{operation.id}">
<h3>{escape(texts.summary)}</h3>
<p class="route"><span class="method {method.lower()}">{method}</span> <code>{escape(operation.path)}</code></p>
<p class="faint">{_KEYS[operation.key]}</p>
{html.prose(texts.description)}
{_samples(texts)}
{_parameters(described["parameters"])}
{_body(described, schemas)}
{_responses(described["responses"], schemas)}
</article>"""


def _samples(texts: Prose) -> str:
    return "<h4>Try it</h4>" + "".join(
        (f"<p>{escape(title)}</p>" if title else "") + pre(sample) for title, sample in texts.samples.items()
    )


def _parameters(parameters: list[Json]) -> str:
    rows = (
        [
            f"<code>{each['name']}</code>",
            f"{each['in']}{', required' if each.get('required') else ''}",
            inline(each["description"]) + _limits(each["schema"]),
        ]
        for each in parameters
    )
    return "<h4>Parameters</h4>" + table("Name", "In", "Meaning", rows=rows) if parameters else ""


def _body(described: Json, schemas: Json) -> str:
    if "requestBody" not in described:
        return ""
    content = described["requestBody"]["content"]
    media_types = ", ".join(f"<code>{escape(each)}</code>" for each in content)
    return f"<h4>Body</h4><p>{media_types}</p>{_fields(content, schemas)}"


def _fields(content: Json, schemas: Json) -> str:
    """Return a table for each struct in a body."""
    return "".join(
        f"<p><code>{name}</code>: {inline(schemas[name]['description'])}</p>"
        + table("Field", "Type", "Meaning", rows=_field_rows(schemas[name]))
        for name in dict.fromkeys(_referenced(content, schemas))
    )


def _field_rows(schema: Json) -> Iterator[list[str]]:
    for name, field in schema["properties"].items():
        yield [
            f"<code>{name}</code>",
            escape(_type(field)) + (", required" if name in schema.get("required", ()) else ""),
            inline(field.get("description", "")) + _limits(field),
        ]


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
    limits = "; ".join(text.format(schema[name]) for name, text in _LIMITS.items() if schema.get(name) is not None)
    return f' <span class="faint">({limits})</span>' if limits else ""


def _responses(responses: Json, schemas: Json) -> str:
    rows = [[_status(status), _meaning(response), _carried(response)] for status, response in responses.items()]
    content = next(iter(responses.values())).get("content", {})
    example = next((each["example"] for each in content.values() if "example" in each), None)
    text = example if isinstance(example, str) else json.dumps(example, indent=2)
    sample = f"<p>For example:</p>{pre(text)}" if example else ""
    return f"<h4>Responses</h4>{table('Status', 'Meaning', 'Content', rows=rows)}{_fields(content, schemas)}{sample}"


def _status(status: str) -> str:
    return f'<span class="{"bad" if status >= "400" else "good"}">{status}</span>'


def _meaning(response: Json) -> str:
    """Return the description of a successful response, or links to the kinds of problem of an error response."""
    schema = response.get("content", {}).get(MEDIA_TYPE, {}).get("schema")
    if schema is None:
        return inline(response["description"])
    kinds = [uri.partition("#")[2] for uri in schema["properties"]["type"]["enum"]]
    return ", ".join(f'<a href="#{kind}">{kind}</a>' for kind in kinds)


def _carried(response: Json) -> str:
    """Return the media types and the headers of a response."""
    names = [escape(each) for each in response.get("content", {}) if each != MEDIA_TYPE]
    names += [name for name in response["headers"] if name != "X-Request-Id"]
    return ", ".join(f"<code>{name}</code>" for name in names)


def _problem(name: str, kind: Kind) -> str:
    return f"""
<article id="{name}">
<h3><span class="bad">{kind.status}</span> <code>{name}</code></h3>
<p>{escape(kind.title)}. {inline(kind.advice)}</p>
</article>"""
