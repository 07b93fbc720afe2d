"""The classification of a user agent over HTTP."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth, parameters
from api.http.operation import JSON, Operation, Parameter, Success
from api.http.problems import Fault, Problem
from api.state import state_of
from ingest.classification.classifier import classify
from ingest.hits.evidence import ACCEPT_CHARACTERS_MAX
from ingest.hits.hit import USER_AGENT_CHARACTERS_MAX

CHARACTERS_MAX = {"userAgent": USER_AGENT_CHARACTERS_MAX, "accept": ACCEPT_CHARACTERS_MAX}
"""Maximum length of each parameter."""


class Classified(msgspec.Struct, frozen=True, rename="camel"):
    """A user agent and its classification. `readership classify` prints it, too."""

    user_agent: Annotated[str, Meta(description="The User-Agent header of the request.")]
    traffic: Annotated[str, Meta(description="`human`, `ai` or `bot`.")]
    agent: Annotated[str | None, Meta(description="Name of the AI agent or bot.")]
    operator: Annotated[str | None, Meta(description="Operator of the AI agent.")]
    purpose: Annotated[
        str | None,
        Meta(
            description="Purpose of the AI agent: `training`, `search`, `assistant` (a person asked for the page),"
            " `agent` (it acts by itself) or `data` (it resells pages)."
        ),
    ]
    rule: Annotated[str, Meta(description="The rule that matched.")]


async def classify_user_agent(request: Request) -> Response:
    auth.require_scope(await auth.key_of(request, state_of(request).keyring), "read")
    sent = parameters.single(request, tuple(CHARACTERS_MAX))
    for name, text in sent.items():
        if len(text) > CHARACTERS_MAX[name]:
            detail = f"has {len(text)} characters; the limit is {CHARACTERS_MAX[name]}"
            raise Problem("invalid-parameter", f"{name} {detail}", [Fault(detail, parameter=name)])
    return Response(msgspec.json.encode(classified(sent.get("userAgent", ""), sent.get("accept"))), media_type=JSON)


def classified(user_agent: str, accept: str | None = None) -> Classified:
    """Return a user agent with its classification. `accept` is the Accept header of the request; None if not known."""
    result = classify(user_agent, accept)
    return Classified(user_agent, result.traffic, result.agent, result.operator, result.purpose, result.rule)


_MEANINGS = {
    "userAgent": ("A User-Agent header; the default is an empty one.", "GPTBot/1.3"),
    "accept": ("An Accept header; by default it is not known.", "text/markdown, */*"),
}
OPERATIONS = (
    Operation(
        "classify",
        "GET",
        "/v1/classify",
        classify_user_agent,
        "Service",
        parameters=tuple(
            Parameter(name, meaning, {"maxLength": CHARACTERS_MAX[name]}, example=example)
            for name, (meaning, example) in _MEANINGS.items()
        ),
        responses=(Success(200, "The classification.", {JSON: Classified}),),
        problems="invalid-parameter unauthenticated forbidden",
    ),
)
