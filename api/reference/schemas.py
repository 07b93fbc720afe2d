"""What the description's answers and bodies are made of: schemas of the structs, headers, problems, and their words."""

from typing import Any

import msgspec

from agent.jobs.job import PROMPT_BYTES_MAX
from agent.jobs.job_json import AgentJob
from api.http import problems
from api.http.middleware import REQUEST_ID
from api.routes import jobs, views
from api.routes.classify import Classified
from ingest.hits import hit, url
from ingest.hits.hit import BeaconHit, ServerHit
from ingest.hotlog.deduplication import REMEMBERED_S, Receipt
from warehouse.control import projects

Json = dict[str, Any]

_TEXT = {"pattern": "^[^\\x00-\\x1f\\x7f]*$", "maxLength": url.URL_CHARACTERS_MAX}
LIMITS: dict[str, Json] = {
    "url": {**_TEXT, "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\s\\x00-\\x1f\\x7f][^\\x00-\\x1f\\x7f]*$"},
    "path": {**_TEXT, "minLength": 1},
    "referrer": _TEXT,
    "eventId": {**_TEXT, "maxLength": hit.EVENT_ID_CHARACTERS_MAX},
    "userAgent": {**_TEXT, "maxLength": hit.USER_AGENT_CHARACTERS_MAX},
    "timestamp": {"format": "date-time"},
}
TOLD = {
    "url": "The page's absolute http or https URL. Give `url` or `path`, not both.",
    "path": f"The page's path. Its query, fragment, last `/` and `index.html` are cut; at most"
    f" {url.PATH_CHARACTERS_MAX:,} characters may then be left.",
    "referrer": "The URL of the page that led here.",
    "eventId": f"Unique to the view: counted once within {REMEMBERED_S // 86_400} days.",
    "userAgent": "The reader's User-Agent header.",
    "timestamp": f"When it was read, at most {hit.FUTURE_MAX.seconds // 60} minutes ahead. Without a zone it is UTC;"
    " not given, it is now.",
    "status": "The HTTP status that your server answered with.",
    "format": "What was served, such as `text/html` or `text/markdown`.",
    "accepted": "Hits stored.",
    "duplicates": "Hits whose `eventId` was counted before.",
    "rejected": "Hits not taken.",
    "index": "Which hit of the body, from 0.",
    "field": "The field at fault; null where the row as a whole is no hit.",
    "reason": "What is wrong with it.",
    "human": "Views by people.",
    "ai": "Views by AI agents.",
    "total": "`human` plus `ai`.",
    "totals": "Of the whole range, whatever the page.",
    "views": "A page of the paths, most viewed first.",
    "hasMore": "Whether more come after this page.",
    "traffic": "`human`, `ai` or `bot`.",
    "agent": "The AI agent or bot.",
    "operator": "Who runs the AI agent.",
    "purpose": "What the AI agent reads for: `training`, `search`, `assistant` (a person asked for the page), `agent`"
    " (it acts by itself) or `data` (it sells pages on).",
    "rule": "The rule that says so.",
    "detail": "What is wrong.",
    "parameter": "The query parameter at fault.",
    "prompt": f"What the agent is to do; at most {PROMPT_BYTES_MAX >> 10} KiB of UTF-8.",
    "id": "The job's own.",
    "AgentJob.status": "`active`: the agent is at work or about to be; `completed`; `failed`; `archived`.",
    "source": "Where the work started: the repository's URL, and the branch that the pull request is for.",
    "model": "The AI model used for the job.",
    "prLink": "URL of the job's pull request. Null while the job is active, and if no files were changed.",
    "createdAt": "When the job was created.",
    "archivedAt": "When the job was archived.",
    "jobs": "A page of the jobs, newest first.",
    "entries": "A page of the log, the oldest entry first.",
    "at": "When.",
    "turn": "Which of the job's prompts, from 1.",
    "kind": "`turn`, `step`, `output` (the end of what the agent printed) or `failure` (why the turn failed).",
    "text": "What happened.",
    "pointer": "The place in the body, as a JSON pointer.",
}

PROJECT = {
    "name": "projectId",
    "in": "path",
    "required": True,
    "description": "The project's id.",
    "schema": {"type": "string", "pattern": f"^{projects.ID.pattern}$"},
    "example": "demo",
}

_HEADERS: dict[str, Json] = {
    "X-Request-Id": {"description": "Names this request in the log.", "schema": {"pattern": f"^{REQUEST_ID.pattern}$"}},
    "WWW-Authenticate": {"description": "What is wrong with the key.", "schema": {"pattern": "^Bearer "}},
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}},
    "ETag": {"description": "Changes when the answer does.", "schema": {"pattern": '^"[0-9a-f]+"$'}},
    "Cache-Control": {"description": "Who may keep it, for how long.", "schema": {"type": "string"}},
    "Allow": {"description": "The methods of the path.", "schema": {"const": "POST, OPTIONS"}},
    "Location": {
        "description": "URL or path of the job, or of the reference.",
        "schema": {"pattern": "/v2/agent/|docs$"},
    },
    "Link": {
        "description": "URL of the next page, if there is one.",
        "schema": {"pattern": '^<[?]limit=[0-9]+&offset=[0-9]+>; rel="next"$'},
        "required": False,
    },
    "RateLimit-Policy": {"description": "Uses, and seconds in which.", "schema": {"pattern": '^"create"|^"message"'}},
    "RateLimit": {
        "description": "Uses left, and seconds until one more.",
        "schema": {"pattern": '^"create"|^"message"'},
    },
    "Accept-Encoding": {"description": "If that was at fault.", "schema": {"type": "string"}, "required": False},
}
CORS: dict[str, Json] = {
    "Access-Control-Allow-Origin": {"description": "The page's origin, if it sent one.", "schema": {"type": "string"}},
    "Access-Control-Allow-Methods": {"description": "To a page's origin.", "schema": {"const": "POST"}},
    "Access-Control-Allow-Headers": {"description": "To a page's origin.", "schema": {"const": "Content-Type"}},
    "Access-Control-Max-Age": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}},
}
_OF_PROBLEMS = {
    "unauthenticated": "WWW-Authenticate",
    "unsupported-media-type": "Accept-Encoding",
    "rate-limited": "Retry-After",
    "overloaded": "Retry-After",
}


def schemas() -> Json:
    """By name."""
    structs = [
        BeaconHit,
        ServerHit,
        Receipt,
        views.Report,
        Classified,
        jobs.Prompt,
        AgentJob,
        jobs.JobList,
        jobs.LogPage,
        problems.Fault,
    ]
    _, made = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    for struct, schema in made.items():
        if "properties" in schema:
            schema["properties"] = {name: _field(struct, name, field) for name, field in schema["properties"].items()}
    for schema in (made["BeaconHit"], made["ServerHit"]):
        schema["properties"] = {name: field | LIMITS.get(name, {}) for name, field in schema["properties"].items()}
        schema["oneOf"] = [_one_of("path", "url"), _one_of("url", "path")]
    return made | {"Problem": _problem(), "RejectedPost": _rejected_post()}


def _field(struct: str, name: str, field: Json) -> Json:
    """With its meaning, and null as one of its types."""
    plain = {**field["anyOf"][0], "type": [field["anyOf"][0]["type"], "null"]} if "anyOf" in field else field
    told = TOLD.get(f"{struct}.{name}", TOLD.get(name))
    return plain | ({"description": told} if told else {})


def _one_of(given: str, other: str) -> Json:
    return {"required": [given], "properties": {given: {"type": "string"}, other: {"type": "null"}}}


def _problem() -> Json:
    text = {"type": "string"}
    fields = {
        "type": {"description": "Leads to what to do about it.", "enum": [f"/docs#{kind}" for kind in problems.KINDS]},
        "title": text | {"description": "The kind, in words."},
        "status": {"description": "The HTTP status.", "type": "integer"},
        "detail": text | {"description": "What is wrong with this request."},
        "requestId": text | {"description": "Names the request in the log."},
        "errors": {"description": "Every fault of the request.", "type": "array", "items": ref("Fault")},
    }
    required = ["type", "title", "status", "detail", "requestId"]
    return {"type": "object", "description": "What went wrong.", "properties": fields, "required": required}


def _rejected_post() -> Json:
    told = "A problem; where every hit of a post was bad, with a receipt of it."
    receipt = {
        "accepted": {"description": "None.", "const": 0},
        "duplicates": {"description": "None.", "const": 0},
        "rejected": {"description": "Every hit.", "type": "array", "items": ref("Rejection")},
    }
    return {**ref("Problem"), "description": told, "properties": receipt}


def headers() -> Json:
    """By name."""
    return {name: {"required": name not in CORS, **header} for name, header in (_HEADERS | CORS).items()}


def answer(told: str, content: Json | None, *headers: str) -> Json:
    """An answer with these headers, and its request id."""
    named = {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *headers)}
    return {"description": told, "headers": named} | ({"content": content} if content else {})


def of_kinds(*kinds: str) -> Json:
    """The answers of these kinds, and of `internal`, which any operation can give, by status."""
    answers: Json = {}
    for status in sorted({problems.KINDS[kind].status for kind in (*kinds, "internal")}):
        same = [kind for kind in (*kinds, "internal") if problems.KINDS[kind].status == status]
        told = " ".join(f"{problems.KINDS[kind].title}. {problems.KINDS[kind].advice}" for kind in same)
        types = {"type": {"enum": [f"/docs#{kind}" for kind in same]}, "status": {"const": status}}
        headers = [_OF_PROBLEMS[kind] for kind in same if kind in _OF_PROBLEMS]
        content = {problems.MEDIA_TYPE: {"schema": {**ref("Problem"), "properties": types}}}
        answers[str(status)] = answer(told, content, *headers)
    return answers


def as_json(schema: str | Json, example: object) -> Json:
    """JSON of a schema, or of the one with that name."""
    return {"application/json": {"schema": ref(schema) if isinstance(schema, str) else schema, "example": example}}


def as_text(media_type: str) -> Json:
    """Text that has no schema."""
    return {media_type: {"schema": {"type": "string"}}}


def ref(name: str) -> Json:
    """To the schema of that name."""
    return {"$ref": f"#/components/schemas/{name}"}


def operation(id: str, tag: str, summary: str, told: str, answers: Json, *given: Json, key: bool = False) -> Json:
    """One operation; `key` if it takes an API key."""
    return {
        "operationId": id,
        "tags": [tag],
        "summary": summary,
        "description": told,
        "security": [{"bearer": []}] if key else [],
        "parameters": list(given),
        "responses": answers,
    }


def parameter(name: str, told: str, schema: Json, where: str = "query", example: str | None = None) -> Json:
    """One parameter that may be left out."""
    made = {"name": name, "in": where, "description": told, "schema": {"type": "string"} | schema}
    return made if example is None else {**made, "example": example}
