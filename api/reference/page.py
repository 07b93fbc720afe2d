"""The description as JSON for programs, and as a page for people."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api.http.problems import KINDS, MEDIA_TYPE, Kind
from api.reference.openapi import description
from api.reference.samples import ADDRESS, SAMPLES
from api.reference.schemas import Json
from api.state import state_of

_TEMPLATE = (Path(__file__).parent / "reference.html").read_text(encoding="utf-8")
_STYLE = _TEMPLATE.partition("<style>")[2].partition("</style>")[0]
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PLAIN_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]/_~-]+")
_CODE = re.compile(r"`([^`]+)`")
_PROBLEM = {
    "type": "/docs#invalid-parameter",
    "title": KINDS["invalid-parameter"].title,
    "status": KINDS["invalid-parameter"].status,
    "detail": "limit must be a whole number from 1 to 250, not '1000'",
    "requestId": "8f14e45fceea167a",
    "errors": [{"detail": "must be a whole number from 1 to 250, not '1000'", "parameter": "limit"}],
}

DOCUMENT = description()
SCHEMAS: Json = DOCUMENT["components"]["schemas"]
SNIPPET = '<script defer src=".../beacon.js"'
"""The beginning of the tag for a site's pages, in the description; the page has the service's address in it."""


class Operation(NamedTuple):
    """One method of one path, and what the description has of it."""

    method: str
    path: str
    found: Json


async def openapi(request: Request) -> Response:
    """GET /openapi.json"""
    return Response(_document(state_of(request).settings.base_url), media_type="application/json")


async def home(request: Request) -> Response:
    """GET /: redirect to the reference. The Location is relative, so that it is right behind a proxy's prefix."""
    return RedirectResponse("docs", headers={"Cache-Control": "no-cache"})


async def page(request: Request) -> Response:
    """GET /docs; the samples send to the base URL, or to the address at which the page is read."""
    base_url = state_of(request).settings.base_url
    address = base_url or str(request.base_url).rstrip("/")
    address = address if _PLAIN_ADDRESS.fullmatch(address) else ADDRESS
    made = _page().replace(ADDRESS, address).replace(escape(SNIPPET), escape(SNIPPET.replace("...", address)))
    return HTMLResponse(made.replace(escape('"/docs#'), escape(f'"{base_url}/docs#')), headers=_HEADERS)


@cache
def _document(base_url: str) -> bytes:
    """Return the description as JSON, with the server and the types of problems of a base URL."""
    if not base_url:
        return msgspec.json.encode(DOCUMENT)
    encoded = msgspec.json.encode({**DOCUMENT, "servers": [{"url": base_url}]})
    return encoded.replace(b'"/docs#', f'"{base_url}/docs#'.encode())


@cache
def _page() -> str:
    tags, paths = DOCUMENT["tags"], DOCUMENT["paths"]
    operations = [
        Operation(method.upper(), path, found) for path, methods in paths.items() for method, found in methods.items()
    ]
    by_tag = {tag["name"]: [each for each in operations if tag["name"] in each.found["tags"]] for tag in tags}
    return Template(_TEMPLATE).substitute(
        version=escape(DOCUMENT["info"]["version"]),
        introduction=_prose(DOCUMENT["info"]["description"]),
        contents="".join(_contents(name, found) for name, found in by_tag.items()),
        operations="".join(
            f"<h2>{escape(tag['description'])}</h2>{''.join(map(_operation, by_tag[tag['name']]))}" for tag in tags
        ),
        problem=_pre(json.dumps(_PROBLEM, indent=2)),
        problem_contents="".join(f'<li><a href="#{kind}">{kind}</a></li>' for kind in KINDS),
        problems="".join(_problem(name, kind) for name, kind in KINDS.items()),
    )


def _contents(tag: str, operations: list[Operation]) -> str:
    links = "".join(
        f'<li><a href="#{each.found["operationId"]}">{escape(each.found["summary"])}</a></li>' for each in operations
    )
    return f"<strong>{escape(tag)}</strong><ul>{links}</ul>"


def _operation(each: Operation) -> str:
    found = each.found
    keyed = {(): "Takes no key.", ("bearer",): "Needs an API key.", ("", "bearer"): "With an API key, or without one."}
    return f"""
<article id="{found["operationId"]}">
<h3>{escape(found["summary"])}</h3>
<p class="route"><span class="method {each.method.lower()}">{each.method}</span> <code>{escape(each.path)}</code></p>
<p class="faint">{keyed[tuple("".join(way) for way in found["security"])]}</p>
{_prose(found["description"])}
{_samples(found)}
{_parameters(found["parameters"])}
{_body(found)}
{_answers(found["responses"])}
</article>"""


def _parameters(parameters: list[Json]) -> str:
    rows = (
        [
            f"<code>{each['name']}</code>",
            f"{each['in']}{', required' if each.get('required') else ''}",
            _inline(each["description"]) + _limits(each["schema"]),
        ]
        for each in parameters
    )
    return "<h4>Parameters</h4>" + _table("Name", "In", "Meaning", rows=rows) if parameters else ""


def _body(found: Json) -> str:
    if "requestBody" not in found:
        return ""
    content = found["requestBody"]["content"]
    kinds = ", ".join(f"<code>{escape(kind)}</code>" for kind in content)
    return f"<h4>Body</h4><p>{kinds}</p>{_fields(content)}"


def _fields(content: Json) -> str:
    """A table for each struct that a body is made of."""
    return "".join(
        f"<p><code>{name}</code>: {_inline(SCHEMAS[name]['description'])}</p>"
        + _table("Field", "Type", "Meaning", rows=_field_rows(SCHEMAS[name]))
        for name in dict.fromkeys(_referenced(content))
    )


def _field_rows(schema: Json) -> Iterator[list[str]]:
    for name, field in schema["properties"].items():
        yield [
            f"<code>{name}</code>",
            escape(_type(field)) + (", required" if name in schema.get("required", ()) else ""),
            _inline(field.get("description", "")) + _limits(field),
        ]


def _referenced(part: Any) -> Iterator[str]:
    """The names of the schemas that a part of the description refers to, and those that they do, in order."""
    if isinstance(part, list):
        for each in part:
            yield from _referenced(each)
    elif isinstance(part, dict):
        for key, each in part.items():
            if key == "$ref":
                name = each.rpartition("/")[2]
                yield name
                yield from _referenced(SCHEMAS[name])
            elif key not in ("example", "examples"):
                yield from _referenced(each)


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
    words = {
        "minimum": "at least {:,}",
        "maximum": "at most {:,}",
        "maxLength": "at most {:,} characters",
        "default": "{} if not given",
    }
    told = "; ".join(text.format(schema[word]) for word, text in words.items() if word in schema)
    return f' <span class="faint">({told})</span>' if told else ""


def _answers(responses: Json) -> str:
    rows = [
        [f'<span class="{"bad" if status >= "400" else "good"}">{status}</span>', _outcome(answer), _carried(answer)]
        for status, answer in responses.items()
    ]
    good = next(iter(responses.values())).get("content", {})
    example = next((each["example"] for each in good.values() if "example" in each), None)
    shown = (
        f"<p>For example:</p>{_pre(example if isinstance(example, str) else json.dumps(example, indent=2))}"
        if example
        else ""
    )
    return f"<h4>Answers</h4>{_table('Status', 'Meaning', 'Carries', rows=rows)}{_fields(good)}{shown}"


def _outcome(answer: Json) -> str:
    """An answer's meaning; of an error the kinds of problem that it can be."""
    schema = answer.get("content", {}).get(MEDIA_TYPE, {}).get("schema")
    if schema is None:
        return _inline(answer["description"])
    kinds = [uri.partition("#")[2] for uri in schema["properties"]["type"]["enum"]]
    return ", ".join(f'<a href="#{kind}">{kind}</a>' for kind in kinds)


def _carried(answer: Json) -> str:
    named = [f"<code>{escape(kind)}</code>" for kind in answer.get("content", {}) if kind != MEDIA_TYPE]
    named += [f"<code>{name}</code>" for name in answer["headers"] if name != "X-Request-Id"]
    return ", ".join(named)


def _samples(found: Json) -> str:
    return "<h4>Try it</h4>" + "".join(
        (f"<p>{escape(told)}</p>" if told else "") + _pre(sample)
        for told, sample in SAMPLES[found["operationId"]].items()
    )


def _problem(name: str, kind: Kind) -> str:
    return f"""
<article id="{name}">
<h3><span class="bad">{kind.status}</span> <code>{name}</code></h3>
<p>{escape(kind.title)}. {_inline(kind.advice)}</p>
</article>"""


def _table(*heads: str, rows: Iterable[list[str]]) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    kind = ' class="fields"' if heads[1] in {"Type", "In"} else ""
    return f'<div class="table"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _pre(text: str) -> str:
    return f"<pre><code>{escape(text)}</code></pre>"


def _prose(text: str) -> str:
    """The little Markdown that descriptions are written in: paragraphs, lists and code."""
    return "".join(map(_block, text.strip().split("\n\n")))


def _block(text: str) -> str:
    if not text.startswith("- "):
        return f"<p>{_inline(text)}</p>"
    items = "".join(f"<li>{_inline(item)}</li>" for item in text.removeprefix("- ").split("\n- "))
    return f"<ul>{items}</ul>"


def _inline(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))
