"""API keys over HTTP: which requests a key allows, the errors of the others, and no trace of a key."""

import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from api import settings
from api.accounts import keys
from tests.api.reports.client import FIREFOX, NO_TLS, problem
from tests.processes.running import PROJECT, Running, new_key
from tests.processes.waiting import until
from tests.stores import sql
from warehouse.control import database

HIT = {"path": "/auth", "userAgent": FIREFOX}


@dataclass(frozen=True)
class Owner:
    """A client of one project, with the Authorization header of each test."""

    client: httpx.Client
    project: str
    data: Path

    def export(self, authorization: str | None, project: str | None = None, query: str = "") -> httpx.Response:
        return self.client.get(f"/v1/analytics/{project or self.project}/views?{query}", headers=bearing(authorization))

    def post(self, authorization: str | None, project: str | None = None, hit: Any = HIT) -> httpx.Response:
        return self.client.post(
            f"/v1/analytics/{project or self.project}/hits", json=hit, headers=bearing(authorization)
        )

    def classify(self, authorization: str | None, query: str = "userAgent=GPTBot/1.3") -> httpx.Response:
        return self.client.get(f"/v1/classify?{query}", headers=bearing(authorization))

    def key(self, scope: keys.Scope = "write") -> str:
        return new_key(self.data, self.project, scope)


def bearing(authorization: str | None) -> dict[str, bytes]:
    return {} if authorization is None else {"Authorization": authorization.encode("latin-1")}


@pytest.fixture
def owner(service: Running) -> Iterator[Owner]:
    """Return a client of a new project."""
    with httpx.Client(base_url=service.url, timeout=60, verify=NO_TLS) as client:
        owner = Owner(client, f"auth-{secrets.token_hex(6)}", service.data)
        owner.key()
        yield owner


def expiring(data: Path, project: str, expires_s: float) -> str:
    """Create a key that expires at a time; the command line only supports whole days."""
    engine = database.connect(settings.read({}, data).database_url)
    token = keys.create(engine, project, "expiring", "write", int(expires_s), int(time.time()))[1]
    engine.close()
    return token


def unauthenticated(response: httpx.Response) -> str:
    """Assert that a response is a 401, and return its detail."""
    detail: str = problem(response, 401)["detail"]
    assert response.headers["www-authenticate"].startswith("Bearer")
    return detail


def typo(token: str) -> str:
    """Return the token with one changed character."""
    return token[:20] + ("a" if token[20] != "a" else "b") + token[21:]


def test_valid_key_is_accepted_with_any_case_of_the_scheme(owner: Owner) -> None:
    token = owner.key()
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert owner.export(f"{scheme} {token}").status_code == 200
        assert owner.post(f"{scheme} {token}").status_code == 202
        assert owner.classify(f"{scheme} {token}").status_code == 200


def test_malformed_authorization_is_rejected(owner: Owner) -> None:
    token = owner.key()
    secret = token.removeprefix("rdr_admin_")
    for authorization in (
        "", "Bearer", token, f"Basic {token}", f"Token {token}", f"Bearer{token}", f"Bearer {token}x",
        f"Bearer {token} x", f"Bearer x{token}", f"Bearer {token[:-1]}", f"Bearer {secret}",
        f"Bearer rdr_admin_{secret.swapcase()}", f"Bearer {typo(token)}", "Bearer \xe9\xff", "Bearer rdr_admin_",
        "Bearer " + 38 * "0", "Bearer rdr_admin_" + 38 * "0", "Bearer rdr_admin_" + 5000 * "0",
        "Basic YWRtaW46YWRtaW4=", "Bearer null",
    ):  # fmt: skip
        for response in (owner.export(authorization), owner.post(authorization), owner.classify(authorization)):
            assert unauthenticated(response), authorization
            assert secret[:20] not in response.text + str(response.headers)
    assert owner.export(f"Bearer {token}").json()["totals"]["total"] == 0


def test_request_without_a_key_is_rejected_unless_it_is_a_beacon(owner: Owner) -> None:
    unauthenticated(owner.export(None))
    unauthenticated(owner.classify(None))
    assert owner.post(None, hit={"path": "/a"}).status_code == 202
    assert owner.post(None, hit=HIT).status_code == 400


def test_detail_distinguishes_a_typing_error_from_an_unknown_key(owner: Owner, tmp_path: Path) -> None:
    elsewhere = new_key(tmp_path / "data", owner.project)
    unknown = unauthenticated(owner.export(f"Bearer {elsewhere}"))
    unauthenticated(owner.post(f"Bearer {elsewhere}"))
    unauthenticated(owner.classify(f"Bearer {elsewhere}"))
    assert unauthenticated(owner.export(f"Bearer {typo(owner.key())}")) != unknown


@pytest.mark.long
def test_key_is_rejected_once_it_expires(owner: Owner) -> None:
    token = expiring(owner.data, owner.project, time.time() + 1000)
    assert owner.export(f"Bearer {token}").status_code == 200
    engine = database.connect(settings.read({}, owner.data).database_url)
    sql.run(engine, "UPDATE keys SET expires_s = created_s WHERE project_id = :project", project=owner.project)
    engine.close()
    until(lambda: owner.export(f"Bearer {token}").status_code == 401)


def test_errors_do_not_reveal_whether_another_project_exists(service: Running, owner: Owner) -> None:
    token = f"Bearer {owner.key()}"

    def content(response: httpx.Response) -> tuple[dict[str, Any], dict[str, str]]:
        body = problem(response, 403)
        assert body.pop("requestId") == response.headers["x-request-id"]
        own = ("x-request-id", "date", "content-length")
        return body, {name: value for name, value in response.headers.items() if name not in own}

    for send in (owner.export, owner.post):
        assert content(send(token, PROJECT)) == content(send(token, "nobody")) == content(send(token, "No-Slug"))


def test_post_with_a_key_of_another_project_stores_nothing(service: Running, owner: Owner) -> None:
    before = service.get("limit=250")
    problem(owner.post(f"Bearer {owner.key()}", PROJECT), 403)
    assert service.get("limit=250") == before


def test_read_key_does_not_post_hits_and_gets_the_required_scopes(owner: Owner) -> None:
    token = f"Bearer {owner.key('read')}"
    assert owner.export(token).status_code == 200
    assert owner.classify(token).status_code == 200
    detail = problem(owner.post(token), 403)["detail"]
    assert detail == "the API key has the scope `read`; this operation needs `ingest` or `write`"
    assert owner.export(token).json()["totals"]["total"] == 0


def test_key_is_checked_before_the_rest_of_the_request(owner: Owner) -> None:
    """Check that a response without a key reveals neither whether a project exists nor the faults of the request."""
    for authorization in (None, "Bearer x", "Basic eDp5"):
        for query in ("limit=0", "colour=red", "dateFrom=x"):
            unauthenticated(owner.export(authorization, query=query))
        unauthenticated(owner.export(authorization, "nobody"))
        unauthenticated(owner.classify(authorization, query="colour=red"))
    hits = f"/v1/analytics/{owner.project}/hits"
    for kind, body in (("text/html", b"x"), ("application/json", b"["), ("application/json", 9_000_000 * b" ")):
        headers = {"Authorization": "Bearer x", "Content-Type": kind, "Content-Encoding": "br", "Idempotency-Key": ""}
        unauthenticated(owner.client.post(hits, content=body, headers=headers))
        unauthenticated(owner.client.post("/v1/analytics/nobody/hits", content=body, headers=headers))


def test_scope_is_checked_before_the_rest_of_the_request(owner: Owner) -> None:
    read = f"Bearer {owner.key('read')}"
    problem(owner.export(read, "nobody", query="limit=0"), 403)
    problem(owner.client.post(f"/v1/analytics/{owner.project}/hits", content=b"[", headers=bearing(read)), 403)


def test_key_of_any_project_may_classify(owner: Owner) -> None:
    response = owner.classify(f"Bearer {owner.key('read')}")
    body = response.json()
    assert (body["userAgent"], body["traffic"], body["agent"]) == ("GPTBot/1.3", "ai", "GPTBot")
    assert (body["operator"], body["purpose"]) == ("OpenAI", "training")
    assert body["rule"]
    accept = {"userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Firefox/145.0", "accept": "text/markdown"}
    token = f"Bearer {owner.key('read')}"
    assert owner.classify(token, query=urlencode(accept)).json()["rule"] == "ai:accept-markdown"
    problem(owner.classify(token, query=f"accept={8_193 * 'x'}"), 400)


def test_key_is_not_in_the_log_in_a_response_or_on_disk(service: Running, owner: Owner) -> None:
    valid, read, expired = owner.key(), owner.key("read"), expiring(owner.data, owner.project, time.time() - 1)
    responses = []
    for token in (valid, read, expired, typo(valid), valid + "x"):
        for form in (f"Bearer {token}", token, f"Basic {token}"):
            responses += [owner.export(form), owner.export(form, "nobody"), owner.post(form), owner.classify(form)]
            responses += [owner.post(form, hit={"colour": "red"}), owner.export(form, query="limit=0")]
        views = f"/v1/analytics/{owner.project}/views"
        responses.append(owner.client.get(views, params={"key": token, "access_token": token}))
        responses.append(owner.client.get(views, headers={"X-Api-Key": token, "Cookie": token}))
    assert {response.status_code for response in responses} == {200, 202, 400, 401, 403}
    last = responses[-1].headers["x-request-id"]
    until(lambda: last in service.log.read_text())
    text = service.log.read_text() + "".join(response.text + str(response.headers) for response in responses)
    files = [file.read_bytes() for file in service.data.rglob("*") if file.is_file()]
    for token in (valid, read, expired):
        secret = token.rpartition("_")[2][:20]
        assert secret not in text
        assert not any(secret.encode() in content for content in files)


def test_ingest_key_only_posts_hits(owner: Owner) -> None:
    token = f"Bearer {owner.key('ingest')}"
    assert owner.post(token).status_code == 202
    rejections = [owner.export(token), owner.classify(token)]
    jobs = f"/v2/agent/{owner.project}/job"
    posts = [("POST", f"{jobs}{path}") for path in ("", "/1/message", "/1/cancel", "/1/archive")]
    for method, path in (*posts, ("GET", f"{jobs}s"), ("GET", f"{jobs}/1"), ("GET", f"{jobs}/1/log")):
        rejections.append(owner.client.request(method, path, json={"prompt": "x"}, headers=bearing(token)))
    for response in rejections:
        detail = problem(response, 403)["detail"]
        assert re.fullmatch(
            r"the API key has the scope `ingest`; this operation needs `(read` or `write|write)`", detail
        )
    assert owner.client.get(f"{jobs}s", headers=bearing(f"Bearer {owner.key('write')}")).json()["jobs"] == []
