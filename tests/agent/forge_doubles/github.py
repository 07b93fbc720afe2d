"""Double of GitHub.

https://docs.github.com/en/rest/pulls/pulls and https://docs.github.com/en/rest/branches/branches
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
    require(request.headers.get("accept") == "application/vnd.github+json", "Accept is not GitHub's")
    require(request.headers.get("x-github-api-version") == "2022-11-28", "no API version")
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    right = forge.tokens.get(token) if scheme == "Bearer" else None
    docs = "https://docs.github.com/rest"
    if right is None:
        return 401, {"message": "Bad credentials", "documentation_url": docs, "status": "401"}, {}
    require(request.segments[0] == "repos" and len(request.segments) >= 4, "no such path")
    if "/".join(request.segments[1:3]).lower() != forge.path.lower():
        return 404, {"message": "Not Found", "documentation_url": docs, "status": "404"}, {}
    match request.method, request.segments[3:]:
        case "GET", ["branches", branch]:
            require(not request.query, "a branch has no parameters")
            exists = branch in forge.branches()
            missing = {"message": "Branch not found", "documentation_url": docs, "status": "404"}
            return (200, {"name": branch, "protected": False}, {}) if exists else (404, missing, {})
        case "GET", ["pulls"]:
            return 200, [pull_json(forge, each) for each in _list(forge, request)], {}
        case "POST", ["pulls"]:
            if right == "read":
                text = "Resource not accessible by personal access token"
                return 403, {"message": text, "documentation_url": docs, "status": "403"}, {}
            return _create(forge, request, docs)
    raise Fault("no such path")


def _list(forge: ForgeDouble, request: Request) -> list[Pull]:
    known = {"state", "head", "base", "sort", "direction", "per_page", "page"}
    require(set(request.query) <= known, "a parameter that GitHub does not have")
    owner, _, branch = request.query["head"].partition(":")
    require(branch, "head is not of the form user:branch, so GitHub would not filter by it")
    state = request.query.get("state", "open")
    chosen = [
        each
        for each in forge.pulls
        if each.branch == branch
        and (each.fork or forge.path.partition("/")[0]).lower() == owner.lower()
        and (state == "all" or (each.state == "open") == (state == "open"))
    ]
    return page(forge, request, chosen, "per_page", 100)


def _create(forge: ForgeDouble, request: Request, docs: str) -> Response:
    missing = missing_fields(
        request, {"title", "head", "base"}, {"body", "head_repo", "maintainer_can_modify", "draft"}
    )
    if missing:
        text = "Invalid request.\n\n" + " ".join(f'"{each}" wasn\'t supplied.' for each in sorted(missing))
        return 422, {"message": text, "documentation_url": docs, "status": "422"}, {}
    forge.before_create()
    head, base = request.body["head"].split(":")[-1], request.body["base"]
    errors: list[dict[str, str]] = [
        {"resource": "PullRequest", "field": name, "code": "invalid"}
        for name, branch in (("head", head), ("base", base))
        if branch not in forge.branches()
    ]
    if any((each.branch, each.base, each.state) == (head, base, "open") for each in forge.pulls):
        owner = forge.path.partition("/")[0]
        text = f"A pull request already exists for {owner}:{head}."
        errors.append({"resource": "PullRequest", "code": "custom", "message": text})
    if len(request.body.get("body", "")) > 65_536:
        errors.append({"resource": "Issue", "code": "custom", "field": "body", "message": "body is too long"})
    if errors:
        return 422, {"message": "Validation Failed", "errors": errors, "documentation_url": docs, "status": "422"}, {}
    pull = forge.add(head, base, request.body["title"], request.body.get("body", ""))
    return created(forge, 201, pull_json(forge, pull))


def pull_json(forge: ForgeDouble, pull: Pull) -> dict[str, Any]:
    return {
        "number": pull.number,
        "state": "open" if pull.state == "open" else "closed",
        "title": pull.title,
        "body": pull.body,
        "html_url": forge.link(pull),
        "head": {"ref": pull.branch, "label": f"{pull.fork}:{pull.branch}", "repo": {"id": 2 if pull.fork else 1}},
        "base": {"ref": pull.base, "repo": {"id": 1}},
    }
