"""What the rules say of a user agent, over HTTP."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from api.http import auth, parameters
from api.http.problems import Fault, Problem
from api.state import state_of
from ingest.classification.classifier import classify
from ingest.hits.hit import USER_AGENT_CHARACTERS_MAX


class Classified(msgspec.Struct, frozen=True, rename="camel"):
    """A user agent and its classification; also what `readership classify` prints."""

    user_agent: str
    traffic: str
    agent: str | None
    operator: str | None
    purpose: str | None
    rule: str


async def classify_user_agent(request: Request) -> Response:
    """GET /v1/classify?userAgent=; without the parameter, of an empty user agent."""
    auth.require_scope(await auth.key_of(request, state_of(request).keyring), "read")
    user_agent = parameters.single(request, ("userAgent",)).get("userAgent", "")
    if len(user_agent) > USER_AGENT_CHARACTERS_MAX:
        detail = f"has {len(user_agent)} characters; at most {USER_AGENT_CHARACTERS_MAX} are taken"
        raise Problem("invalid-parameter", f"userAgent {detail}", [Fault(detail, parameter="userAgent")])
    return Response(msgspec.json.encode(classified(user_agent)), media_type="application/json")


def classified(user_agent: str) -> Classified:
    found = classify(user_agent)
    return Classified(user_agent, found.traffic, found.agent, found.operator, found.purpose, found.rule)
