"""Double of Gitea and Forgejo.

https://gitea.com/api/swagger and https://codeberg.org/api/swagger; the error messages are those of
routers/api/v1/repo/pull.go in go-gitea/gitea.
"""

from tests.agent.forge_doubles.double import (
    Fault,
    ForgeDouble,
    Request,
    Response,
    created,
    missing_fields,
    page,
    require,
)
from tests.agent.forge_doubles.github import pull_json


def respond(forge: ForgeDouble, request: Request) -> Response:
    docs = f"{forge.url}/api/swagger"
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    right = forge.tokens.get(token) if scheme in {"token", "Bearer"} else None
    if right is None:
        return 401, {"message": "invalid username, password or token", "url": docs}, {}
    require(request.segments[0] == "repos" and len(request.segments) >= 4, "no such path")
    gone = 404, {"errors": None, "message": "The target couldn't be found.", "url": docs}, {}
    if "/".join(request.segments[1:3]).lower() != forge.path.lower():
        return gone
    match request.method, request.segments[3:]:
        case "GET", ["branches", branch]:
            return (200, {"name": branch, "protected": False}, {}) if branch in forge.branches() else gone
        case "GET", ["pulls"]:
            known = {"state", "sort", "milestone", "labels", "poster", "page", "limit", "base_branch"}
            require(set(request.query) <= known, "a parameter that Gitea does not have")
            state = request.query.get("state", "open")
            chosen = [each for each in forge.pulls if state == "all" or (each.state == "open") == (state == "open")]
            return 200, [pull_json(forge, each) for each in page(forge, request, chosen, "limit", 50)], {}
        case "POST", ["pulls"]:
            if right == "read":
                text = "token does not have at least one of required scope(s): [write:repository]"
                return 403, {"message": text, "url": docs}, {}
            return _create(forge, request, docs)
    raise Fault("no such path")


def _create(forge: ForgeDouble, request: Request, docs: str) -> Response:
    missing = missing_fields(request, {"title", "head", "base"}, {"body", "assignee"})
    if missing:
        return 422, {"message": f"[{min(missing).title()}]: Required", "url": docs}, {}
    forge.before_create()
    head, base = request.body["head"], request.body["base"]
    if base in forge.tags:
        return 422, {"message": "Invalid PullRequest: base and head must be branches", "url": docs}, {}
    if base not in forge.branches() or head not in forge.branches():
        return 404, {"errors": None, "message": "The target couldn't be found.", "url": docs}, {}
    for each in forge.pulls:
        if (each.branch, each.base, each.state) == (head, base, "open"):
            text = (
                f"pull request already exists for these targets [id: {each.number}, issue_id: {each.number}, "
                f"head_repo_id: 1, base_repo_id: 1, head_branch: {head}, base_branch: {base}]"
            )
            return 409, {"message": text, "url": docs}, {}
    pull = forge.add(head, base, request.body["title"], request.body.get("body", ""))
    return created(forge, 201, pull_json(forge, pull))
