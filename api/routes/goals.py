"""Goals over HTTP: list, add and remove."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from api import goals as definitions
from api.accounts.keys import BearerKey
from api.http import auth, body, parameters
from api.http.operation import JSON, Operation, Success
from api.http.problems import Problem
from api.state import state_of
from ingest.hits.json_errors import explain
from warehouse.control import goals
from warehouse.control.goals import NAME_CHARACTERS_MAX, VALUE_CHARACTERS_MAX, Goal, Kind

BODY_BYTES_MAX = 32 * 1024
"""Maximum size of the JSON of a goal, in bytes: each byte of its texts may be escaped."""


class NewGoal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A goal of a project."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_CHARACTERS_MAX, description="Name, unique in the project.")]
    kind: Annotated[Kind, Meta(description="`path` for a page that visitors reach, or `event`.")]
    value: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=VALUE_CHARACTERS_MAX["path"],
            description="A path, the paths with a prefix (`/order/*`) or with a part (`*thanks*`); or the name of an"
            f" event, of at most {VALUE_CHARACTERS_MAX['event']} characters.",
        ),
    ]


class GoalDefinition(NewGoal, frozen=True, rename="camel"):
    """A goal with its id."""

    id: Annotated[str, Meta(description="Id of the goal.")]
    created_at: Annotated[datetime, Meta(description="Time of its definition.")]


class GoalList(msgspec.Struct, frozen=True):
    """The goals of a project."""

    goals: Annotated[list[GoalDefinition], Meta(description="The goals, by name.")]


async def goals_of(request: Request) -> Response:
    """Respond to GET and POST /v1/projects/{projectId}/goals."""
    control, project = state_of(request).control, request.path_params["projectId"]
    is_new = request.method == "POST"
    await auth.key_for(request, state_of(request).keyring, project, "write" if is_new else "read")
    parameters.single(request, ())
    if is_new:
        new = await _new_goal(request)
        key = await auth.key_for(request, state_of(request).keyring, project, "write")  # it may be deleted meanwhile
        added = await run_in_threadpool(definitions.add, control, project, new.name, new.kind, new.value, _author(key))
        return Response(msgspec.json.encode(_public(added)), 201, media_type=JSON)
    listed = await run_in_threadpool(goals.of_project, control, project)
    return Response(msgspec.json.encode(GoalList([_public(each) for each in listed])), media_type=JSON)


async def remove(request: Request) -> Response:
    project = request.path_params["projectId"]
    key = await auth.key_for(request, state_of(request).keyring, project, "write")
    parameters.single(request, ())
    await run_in_threadpool(goals.remove, state_of(request).control, project, request.path_params["id"], _author(key))
    return Response(status_code=204)


async def _new_goal(request: Request) -> NewGoal:
    """Return the goal of the body. Raises Problem `invalid-body` and the kinds of `body.read`."""
    body.media_type(request, (JSON,))
    content = await body.read(request, BODY_BYTES_MAX)
    try:
        return msgspec.json.decode(content, type=NewGoal)
    except (ValueError, RecursionError) as error:
        field, reason = explain(error, NewGoal)
        raise Problem("invalid-body", f"{field or 'the body'} {reason}") from None


def _public(goal: Goal) -> GoalDefinition:
    return GoalDefinition(goal.name, goal.kind, goal.value, goal.id, datetime.fromtimestamp(goal.created_s, UTC))


def _author(key: BearerKey) -> str:
    return f"the API key “{key.name}”"[:100]  # the audit log has no more


PATH = "/v1/projects/{projectId}/goals"
_PROBLEMS = "invalid-parameter unauthenticated forbidden overloaded"
_LISTED, _REMOVED = Success(200, "The goals.", {JSON: GoalList}), Success(204, "Removed.")
OPERATIONS = (
    Operation("listGoals", "GET", PATH, goals_of, "Service", (_LISTED,), _PROBLEMS),
    Operation(
        "addGoal",
        "POST",
        PATH,
        goals_of,
        "Service",
        (Success(201, "The goal.", {JSON: GoalDefinition}),),
        f"{_PROBLEMS} invalid-body body-too-slow body-too-large unsupported-media-type not-found",
        body={JSON: NewGoal},
    ),
    Operation("removeGoal", "DELETE", f"{PATH}/{{id}}", remove, "Service", (_REMOVED,), f"{_PROBLEMS} not-found"),
)
