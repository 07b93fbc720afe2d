"""Double of GitLab.

https://docs.gitlab.com/api/merge_requests/, https://docs.gitlab.com/api/branches/ and
https://docs.gitlab.com/api/rest/troubleshooting/
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
    right = forge.tokens.get(request.headers.get("private-token", ""))
    if right is None:
        return 401, {"message": "401 Unauthorized"}, {}
    require(request.segments[0] == "projects" and len(request.segments) >= 3, "no such path")
    if request.segments[1].lower() != forge.path.lower():
        return 404, {"message": "404 Project Not Found"}, {}
    match request.method, request.segments[2:]:
        case "GET", ["repository", "branches", branch]:
            exists = branch in forge.branches()
            return (
                (200, {"name": branch, "merged": False}, {})
                if exists
                else (404, {"message": "404 Branch Not Found"}, {})
            )
        case "GET", ["merge_requests"]:
            known = {"state", "source_branch", "target_branch", "order_by", "sort", "per_page", "page"}
            require(set(request.query) <= known, "a parameter that GitLab does not have")
            state = request.query.get("state", "all")
            require(state in {"opened", "closed", "merged", "locked", "all"}, "a state that GitLab does not have")
            chosen = [each for each in forge.pulls if each.branch == request.query.get("source_branch", each.branch)]
            chosen = [each for each in chosen if state in {"all", _state(each)}]
            return 200, [_merge_request(forge, each) for each in page(forge, request, chosen, "per_page", 100)], {}
        case "POST", ["merge_requests"]:
            if right == "read":
                text = "The request requires higher privileges than provided by the access token."
                return 403, {"error": "insufficient_scope", "error_description": text, "scope": "api"}, {}
            return _create(forge, request)
    raise Fault("no such path")


def _create(forge: ForgeDouble, request: Request) -> Response:
    missing = missing_fields(request, {"title", "source_branch", "target_branch"}, {"description", "labels", "squash"})
    if missing:
        return 400, {"error": ", ".join(f"{each} is missing" for each in sorted(missing))}, {}
    forge.before_create()
    branch, base = request.body["source_branch"], request.body["target_branch"]
    if len(request.body["title"]) > 255:
        return 400, {"message": {"title": ["is too long (maximum is 255 characters)"]}}, {}
    for each in forge.pulls:
        if (each.branch, each.base, each.state) == (branch, base, "open"):
            text = f"Another open merge request already exists for this source branch: !{each.number}"
            return 409, {"message": [text]}, {}
    description = request.body.get("description", "")
    require(not any(line.startswith("/") for line in description.splitlines()), "GitLab would execute a quick action")
    return created(forge, 201, _merge_request(forge, forge.add(branch, base, request.body["title"], description)))


def _state(pull: Pull) -> str:
    return "opened" if pull.state == "open" else pull.state


def _merge_request(forge: ForgeDouble, pull: Pull) -> dict[str, Any]:
    return {
        "iid": pull.number,
        "state": _state(pull),
        "title": pull.title,
        "description": pull.body,
        "web_url": forge.link(pull),
        "source_branch": pull.branch,
        "target_branch": pull.base,
        "source_project_id": 2 if pull.fork else 1,
        "target_project_id": 1,
    }
