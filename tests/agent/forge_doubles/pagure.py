"""Double of Pagure.

https://pagure.io/api/0/; undocumented responses are those of version 5.14.1.
"""

from typing import Any

from tests.agent.forge_doubles.double import (
    Fault,
    ForgeDouble,
    Pull,
    Request,
    Response,
    created,
    missing_fields,
    page,
    require,
)


def respond(forge: ForgeDouble, request: Request) -> Response:
    """Respond to a request. Pagure ignores the token of a request that only reads."""
    match "/".join(request.segments[:2]), request.method, request.segments[2:]:
        case path, _, _ if path.lower() != forge.path.lower():
            return 404, {"error": "Project not found", "error_code": "ENOPROJECT"}, {}
        case _, "GET", ["pull-requests"]:
            known = {"status", "assignee", "author", "tags", "page", "per_page"}
            require(set(request.query) <= known, "a parameter that Pagure does not have")
            require(int(request.query.get("per_page", "20")) <= 100, "per_page must be between 1 and 100")
            state = request.query.get("status", "open").lower()
            chosen = [each for each in forge.pulls if state in {"all", each.state}]
            listed = [_request(forge, each) for each in page(forge, request, chosen, "per_page", 100)]
            return 200, {"args": dict(request.query), "requests": listed, "total_requests": len(chosen)}, {}
        case _, "POST", ["pull-request", "new"]:
            return _create(forge, request)
    raise Fault("no such path")


def _create(forge: ForgeDouble, request: Request) -> Response:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    right = forge.tokens.get(token) if scheme == "token" else None
    if right != "write":
        text = (
            f"Invalid or expired token. Please visit {forge.url}/settings#nav-api-tab to get or renew your API token."
        )
        lacking = "Invalid token" if right is None else "Missing ACLs: pull_request_create"
        return 401, {"error": text, "error_code": "EINVALIDTOK", "errors": lacking}, {}
    missing = missing_fields(request, {"title", "branch_from", "branch_to"}, {"initial_comment", "repo_from"})
    invalid = {"error": "Invalid or incomplete input submitted", "error_code": "EINVALIDREQ"}
    if missing:
        return 400, {**invalid, "errors": {each: ["This field is required."] for each in sorted(missing)}}, {}
    forge.before_create()
    branch, base = request.body["branch_from"], request.body["branch_to"]
    if branch not in forge.branches():
        return 400, {**invalid, "errors": f"Branch {branch} does not exist"}, {}
    if base not in forge.branches():
        return 400, {**invalid, "errors": f"Branch {base} could not be found in the target repo"}, {}
    pull = forge.add(branch, base, request.body["title"], request.body.get("initial_comment", ""))
    return created(forge, 200, _request(forge, pull))


def _request(forge: ForgeDouble, pull: Pull) -> dict[str, Any]:
    return {
        "id": pull.number,
        "status": pull.state.title(),
        "title": pull.title,
        "initial_comment": pull.body or None,
        "full_url": forge.link(pull),
        "branch": pull.base,
        "branch_from": pull.branch,
        "project": {"id": 1, "fullname": forge.path},
        "repo_from": {"id": 2 if pull.fork else 1, "fullname": pull.fork or forge.path},
    }
