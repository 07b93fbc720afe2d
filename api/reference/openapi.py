"""The OpenAPI 3.1 description of every route. Limits are the constants that are enforced, bodies the structs."""

import json
from importlib.metadata import version

from api.http import parameters, problems
from api.http.headers import IDEMPOTENCY_KEY_CHARACTERS_MAX
from api.reference import openapi_jobs
from api.reference.schemas import (
    CORS,
    LIMITS,
    PROJECT,
    TOLD,
    Json,
    answer,
    as_json,
    as_text,
    headers,
    of_kinds,
    operation,
    parameter,
    ref,
    schemas,
)
from api.routes import hits, views
from api.settings import Settings
from ingest.hits import body, hit
from ingest.hotlog.deduplication import REMEMBERED_S

_DAYS = REMEMBERED_S // 86_400

_INTRODUCTION = f"""\
Readership tells a site's owner who reads each page: people, or AI. Sites send it their page views; it says of
each whether a human, an AI agent (`ai`: GPTBot, Claude-User and others) or another bot (a search engine, a
monitor, a script) made it, keeps it, and answers with counts. A site is a project; `projectId` is its id.

- An API key is sent as `Authorization: Bearer <key>` and is good for one project: with the scope `read` to
  export, with `ingest` to send hits and nothing else, with `write` for everything. Keep it on servers: the pages
  of a site send their views without one.
- A key of the scope `write` also starts agent jobs: a coding agent works on a prompt and opens a pull request.
  Give a web server a key of the scope `ingest`.
- Every answer has an `X-Request-Id`: yours, if the request brought one of up to 64 letters, digits and `._-`.
- Every error is a problem as RFC 9457 has it, `{problems.MEDIA_TYPE}`; its `type` leads to what to do about it.
- What takes GET takes HEAD. Any other method is answered `405`, with those there are in `Allow`. All times are
  UTC.
"""
_SEND = f"""\
A `202` promises that each hit it calls `accepted` is on disk, safe from a crash and a loss of power, and is
counted by the next export. After any other answer nothing was kept. If no answer reaches you, you cannot know:
send it again with the same `Idempotency-Key` or the same `eventId`s, and nothing is counted twice.

With an API key of the scope `ingest` or `write`, for a server, an edge or a log shipper: one JSON object, an
array of them, or NDJSON, an object a line. At most {body.HITS_MAX:,} hits and {body.BODY_BYTES_MAX >> 20} MiB, also
once unpacked where it comes with `Content-Encoding: gzip`.

- Each hit is judged by itself. A bad one does not stop the others: `rejected` tells its index (from 0; blank
  lines of NDJSON are not counted), its field and the reason. Only when all are bad is the answer `400`, with
  the same `rejected`.
- `userAgent` is what gets classified: that of the reader whom your server answered, never that of your own
  client. A hit without one is taken for a bot's.
- An `eventId` is counted once in a project within {_DAYS} days. A repeat is a duplicate, which is no error.
- An `Idempotency-Key` does the same for a whole post: sent again with the same body within {_DAYS} days, it is
  answered with the first `202` and stores nothing; with another body, `422`.

Without a key, for a page: a beacon, such as `beacon.js` sends. One JSON object of at most
{body.BEACON_BYTES_MAX >> 10} KiB with `url` or `path`, and perhaps `referrer` and `eventId`. Its user agent and
time are the request's own. As `text/plain` a browser sends it across origins without asking first. Its
`Origin`, if it has one, must be one of the project's. One address may send {Settings.beacons_per_minute}
beacons and pixels in any minute, unless the operator has set another number.
"""
_EXPORT = """\
How often people and AI agents read each path, from `dateFrom` up to, not including, `dateTo`. Bots are not
counted: `total` is `human` plus `ai`. Every hit that was answered `202` before the request is in it. It
needs a key of the scope `read` or `write`.

- The paths come most viewed first, equally viewed ones in byte order. `totals` are of the whole range, on every
  page.
- All of September is `dateFrom=2026-09-01&dateTo=2026-10-01`. Without `dateFrom` the range begins with the
  first hit; without `dateTo` it ends now.
- For the next page add `limit` to `offset`, while `hasMore` is true. Page n begins at `offset = (n - 1) *
  limit`.
- `Accept: text/csv` or `application/vnd.apache.parquet` asks for every path at once, as a table with the
  columns `path`, `human`, `ai` and `total`; `limit` and `offset` then change nothing.
- Send the `ETag` of an answer back as `If-None-Match`: if nothing has changed, the answer is an empty `304`.
"""
_SCRIPT = """\
Loaded by a page, it sends a beacon for each view, in single-page sites too: `<script defer src=".../beacon.js"
data-project="demo"></script>`. The page's origin must be one of the project's.
"""

_READYZ = "Whether it can take and count hits: each check, and what is wrong where one fails."
_METRICS = (
    "Open to whoever reaches it, like the two above: close these paths at your proxy if they are no one's business."
)

_HIT = {
    "path": "/docs/hello",
    "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)",
    "timestamp": "2026-09-01T12:00:00Z",
}
_LINES = '{"path": "/docs/hello", "userAgent": "GPTBot/1.3"}\n{"path": "/blog", "userAgent": "curl/8.5.0"}\n'
_BEACON = '{"url": "https://example.com/docs/hello?utm_source=news", "referrer": "https://www.google.com/"}'
_RECEIPT = {
    "accepted": 1,
    "duplicates": 0,
    "rejected": [{"index": 1, "field": "path", "reason": "give one of `url` and `path`"}],
}
_REPORT = {
    "totals": {"human": 812, "ai": 377, "total": 1189},
    "views": [{"path": "/docs/hello", "human": 61, "ai": 180, "total": 241}],
    "hasMore": True,
}
_CLASSIFIED = {
    "userAgent": "GPTBot/1.3",
    "traffic": "ai",
    "agent": "GPTBot",
    "operator": "OpenAI",
    "purpose": "training",
    "rule": "ai:GPTBot",
}
_ALIVE = {"status": "ok"}
_READINESS = {
    "properties": {
        "status": {"enum": ["ok", "failed"]},
        "checks": {"description": "`ok`, or what is wrong.", "additionalProperties": {"type": "string"}},
        "warnings": {
            "description": "What an operator should look at, although the service works.",
            "additionalProperties": {"type": "string"},
        },
    },
    "required": ["status", "checks"],
}
_READY = {
    "Every check passes.": {
        "status": "ok",
        "checks": {"controlDatabase": "ok", "hotLog": "ok", "lake": "ok", "upkeep": "ok"},
    },
    "A check fails.": {
        "status": "failed",
        "checks": {
            "controlDatabase": "ok",
            "hotLog": "hits have waited too long to be loaded",
            "lake": "ok",
            "upkeep": "ok",
        },
    },
}


def description() -> Json:
    """The whole document."""
    tags = {
        "Send": "Page views in",
        "Read": "Counts out",
        "Jobs": "Prompts into pull requests",
        "Service": "For operators and machines",
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Readership",
            "version": version("readership"),
            "summary": "Who reads your site: people, or AI?",
            "description": _INTRODUCTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": told} for name, told in tags.items()],
        "paths": {
            "/v1/analytics/{projectId}/hits": {"post": _send(), "options": _preflight()},
            "/v1/analytics/{projectId}/pixel.gif": {"get": _pixel()},
            "/v1/analytics/{projectId}/views": {"get": _views()},
            "/v1/classify": {"get": _classify()},
            **openapi_jobs.paths(),
            **_service(),
        },
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "An API key."}},
            "headers": headers(),
            "schemas": schemas(),
        },
    }


def _send() -> Json:
    one, beacon = ref("ServerHit"), ref("BeaconHit")
    many = {"type": "array", "items": one, "minItems": 1, "maxItems": body.HITS_MAX}
    samples = {"hit": _HIT, "hits": [_HIT, {"path": "/blog"}], "beacon": json.loads(_BEACON)}
    examples = {name: {"value": sample} for name, sample in samples.items()}
    content = {
        hits.JSON: {"schema": {"anyOf": [one, many, beacon]}, "examples": examples},
        hits.NDJSON: {"schema": {"type": "string"}, "example": _LINES},
        hits.TEXT: {"schema": {"type": "string", "contentSchema": beacon}, "example": _BEACON},
    }
    length = {"minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARACTERS_MAX}
    key = parameter("Idempotency-Key", "Unique to the post, which is then stored once. With a key.", length, "header")
    kinds = (
        "invalid-body invalid-header unauthenticated forbidden origin-not-allowed not-found body-too-slow "
        "body-too-large unsupported-media-type"
    )
    stored = answer("Stored.", as_json("Receipt", _RECEIPT), "Access-Control-Allow-Origin")
    answers = {"202": stored, **of_kinds(*kinds.split(), "idempotency-mismatch", "rate-limited", "overloaded")}
    answers["400"]["content"][problems.MEDIA_TYPE]["schema"] |= ref("RejectedPost")
    return {
        **operation("sendHits", "Send", "Send page views", _SEND, answers, PROJECT, key),
        "security": [{}, {"bearer": []}],
        "requestBody": {"required": True, "content": content},
    }


def _preflight() -> Json:
    told = "A browser asks this by itself before a page of another origin sends JSON."
    answers = {
        "204": answer("The page may send, if its origin comes back.", None, "Allow", *CORS),
        **of_kinds("origin-not-allowed", "not-found"),
    }
    return operation("mayPageSend", "Send", "May a page of this origin send?", told, answers, PROJECT)


def _pixel() -> Json:
    told = (
        "A beacon for pages without JavaScript: put it into an `img` tag. It is answered when the view is on disk, and"
        " counts among the beacons of its address. A HEAD counts nothing. Browsers send an image's `Origin` only where"
        " the tag has `crossorigin`; then it must be one of the project's."
    )
    given = [parameter(name, TOLD[name], LIMITS[name]) for name in ("path", "url", "referrer", "eventId")]
    given[0]["example"] = "/docs/hello"
    image = {"image/gif": {"schema": {"type": "string", "contentMediaType": "image/gif"}}}
    answers = {
        "200": answer("One transparent pixel; the view is stored.", image, "Cache-Control"),
        **of_kinds("invalid-parameter", "origin-not-allowed", "not-found", "rate-limited", "overloaded"),
    }
    return operation("sendPixel", "Send", "Send a page view by an image", told, answers, PROJECT, *given)


def _views() -> Json:
    day = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
    limit = {"type": "integer", "minimum": 1, "maximum": parameters.LIMIT_MAX, "default": parameters.LIMIT_DEFAULT}
    given = [
        parameter("dateFrom", "The first day, or ISO 8601 time, of the range.", day, example="2026-09-01"),
        parameter("dateTo", "The day or time at which the range ends; not in it.", day, example="2026-10-01"),
        parameter("limit", "Paths in a page.", limit),
        parameter("offset", "Paths to skip.", {"type": "integer", "minimum": 0, "default": 0}),
        parameter("If-None-Match", "The `ETag` of an earlier answer.", {}, "header"),
    ]
    table = {"schema": {"type": "string"}, "example": "path,human,ai,total\r\n/docs/hello,61,180,241\r\n"}
    binary = {"schema": {"type": "string", "contentMediaType": views.PARQUET}}
    content = {**as_json("Report", _REPORT), views.CSV: table, views.PARQUET: binary}
    answers = {
        "200": answer("The counts.", content, "ETag", "Cache-Control"),
        "304": answer("What the `ETag` names is still so.", None, "ETag", "Cache-Control"),
        **of_kinds("invalid-parameter", "unauthenticated", "forbidden", "not-acceptable", "data-incomplete"),
    }
    return operation("exportViews", "Read", "Export page views", _EXPORT, answers, PROJECT, *given, key=True)


def _classify() -> Json:
    told = (
        "What a hit with this user agent would count as, and the rule that says so. A key of any project with the"
        " scope `read` or `write` will do."
    )
    length = {"maxLength": hit.USER_AGENT_CHARACTERS_MAX}
    given = parameter("userAgent", "A User-Agent header; not given, an empty one.", length, example="GPTBot/1.3")
    answers = {
        "200": answer("The classification.", as_json("Classified", _CLASSIFIED)),
        **of_kinds("invalid-parameter", "unauthenticated", "forbidden"),
    }
    return operation("classify", "Read", "Classify a user agent", told, answers, given, key=True)


def _service() -> Json:
    """Paths that take no key and no project."""
    tag = parameter("If-None-Match", "The `ETag` of an earlier answer.", {}, "header")
    script = {
        "200": answer("JavaScript.", as_text("text/javascript"), "ETag", "Cache-Control"),
        "304": answer("What the `ETag` names is still so.", None, "ETag", "Cache-Control"),
    }
    ready, unready = (answer(told, as_json(_READINESS, example)) for told, example in _READY.items())
    alive = answer("It lives.", as_json({"const": _ALIVE}, _ALIVE))
    exposition = answer("Prometheus text format.", as_text("text/plain"))
    document = answer("OpenAPI 3.1.", {"application/json": {"schema": {"required": ["openapi", "info", "paths"]}}})
    page = answer("This page.", as_text("text/html"))
    home = answer("The reference is at `/docs`.", None, "Location", "Cache-Control")
    return {
        "/": _get("home", "Service", "Go to the reference", "For people.", {"307": home}),
        "/beacon.js": _get("script", "Send", "The script for a site's pages", _SCRIPT, script, tag),
        "/healthz": _get("alive", "Service", "Does it live?", "The process answers.", {"200": alive}),
        "/readyz": _get("ready", "Service", "Can it work?", _READYZ, {"200": ready, "503": unready}),
        "/metrics": _get("metrics", "Service", "What it counts", _METRICS, {"200": exposition}),
        "/openapi.json": _get("description", "Service", "This description", "For programs.", {"200": document}),
        "/docs": _get("reference", "Service", "This reference", "For people.", {"200": page}),
    }


def _get(id: str, tag: str, summary: str, told: str, answers: Json, *given: Json) -> Json:
    return {"get": operation(id, tag, summary, told, answers | of_kinds(), *given)}
