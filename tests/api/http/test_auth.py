"""Whose key opens what, what the others are told, and that no key is ever seen again."""

import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from api import keys, settings
from api.cli.main import main
from tests.running import PROJECT, Running, new_key
from tests.waiting import each_alone, until
from warehouse.control import database

NO_TLS = False  # `verify`: a client that would verify reads all certificates first, for 20 ms
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
HIT = {"path": "/auth", "userAgent": FIREFOX}
REVOKED_WITHIN_S = 5


@dataclass(frozen=True)
class Owner:
    """Who asks for a project's things with whatever key a test gives."""

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
    """Of a project of its own."""
    with httpx.Client(base_url=service.url, timeout=60, verify=NO_TLS) as client:
        made = Owner(client, f"auth-{secrets.token_hex(6)}", service.data)
        made.key()
        yield made


def expiring(data: Path, project: str, expires_s: float) -> str:
    """A key that ends at a time; the command line knows whole days alone."""
    engine = database.connect(settings.read({}, data).database_url)
    token = keys.create(engine, project, "expiring", "write", int(expires_s), int(time.time()))[1]
    engine.dispose()
    return token


def problem(answer: httpx.Response, status: int) -> Any:
    """The body of an RFC 9457 problem, of the status expected."""
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    return answer.json()


def refused(answer: httpx.Response) -> str:
    """What a 401 says."""
    detail: str = problem(answer, 401)["detail"]
    assert answer.headers["www-authenticate"].startswith("Bearer")
    return detail


def typo(token: str) -> str:
    """The token with one character of its secret changed."""
    return token[:20] + ("a" if token[20] != "a" else "b") + token[21:]


def test_a_key_is_its_prefix_and_38_base62_characters(owner: Owner) -> None:
    made = {owner.key() for _ in range(5)}
    assert len(made) == 5
    assert all(re.fullmatch(r"rdr_admin_[0-9A-Za-z]{38}", token) for token in made)


def test_a_good_key_opens_and_the_schemes_case_does_not_matter(owner: Owner) -> None:
    token = owner.key()
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert owner.export(f"{scheme} {token}").status_code == 200
        assert owner.post(f"{scheme} {token}").status_code == 202
        assert owner.classify(f"{scheme} {token}").status_code == 200


@pytest.mark.parametrize(
    "form",
    [
        "",
        "Bearer",
        "{token}",
        "Basic {token}",
        "Token {token}",
        "Bearer{token}",
        "Bearer {token}x",
        "Bearer {token} x",
        "Bearer x{token}",
        "Bearer {short}",
        "Bearer {secret}",
        "Bearer {upper}",
        "Bearer {typo}",
        "Bearer \xe9\xff",
        "Bearer rdr_admin_",
        "Bearer " + 38 * "0",
        "Bearer rdr_admin_" + 38 * "0",
        "Bearer rdr_admin_" + 5000 * "0",
        "Basic YWRtaW46YWRtaW4=",
        "Bearer null",
    ],
)
def test_a_header_that_is_no_whole_key_is_refused(owner: Owner, form: str) -> None:
    token = owner.key()
    secret = token.removeprefix("rdr_admin_")
    upper = "rdr_admin_" + secret.swapcase()
    given = form.format(token=token, short=token[:-1], secret=secret, typo=typo(token), upper=upper)
    for answer in (owner.export(given), owner.post(given), owner.classify(given)):
        detail = refused(answer)
        assert secret[:20] not in answer.text + str(answer.headers)
        assert detail
    assert owner.export(f"Bearer {token}").json()["totals"]["total"] == 0


def test_no_key_is_refused_but_for_beacons(owner: Owner) -> None:
    refused(owner.export(None))
    refused(owner.classify(None))
    assert owner.post(None, hit={"path": "/a"}).status_code == 202
    assert owner.post(None, hit=HIT).status_code == 400


def test_a_typing_error_is_told_from_an_unknown_key(owner: Owner, tmp_path: Path) -> None:
    elsewhere = new_key(tmp_path / "data", owner.project)
    unknown = refused(owner.export(f"Bearer {elsewhere}"))
    refused(owner.post(f"Bearer {elsewhere}"))
    refused(owner.classify(f"Bearer {elsewhere}"))
    assert refused(owner.export(f"Bearer {typo(owner.key())}")) != unknown


def test_an_expired_key_is_refused(owner: Owner) -> None:
    past = expiring(owner.data, owner.project, time.time() - 1)
    for answer in (owner.export(f"Bearer {past}"), owner.post(f"Bearer {past}"), owner.classify(f"Bearer {past}")):
        refused(answer)


def test_a_key_stops_when_it_expires(owner: Owner) -> None:
    soon = int(time.time()) + 2
    token = expiring(owner.data, owner.project, soon)
    assert owner.export(f"Bearer {token}").status_code == 200
    until(lambda: owner.export(f"Bearer {token}").status_code == 401)
    assert soon <= time.time() < soon + REVOKED_WITHIN_S


def test_a_revoked_key_stops_within_five_seconds_in_every_worker(start: Callable[..., Running]) -> None:
    service = start(workers=2)
    leaked, kept = new_key(service.data), new_key(service.data)

    def statuses(token: str) -> list[int]:
        """Of a request to each worker."""
        headers = {"Authorization": f"Bearer {token}"}
        return [httpx.get(service.views, headers=headers, verify=NO_TLS).status_code for _ in each_alone(service)]

    assert statuses(leaked) == statuses(kept) == [200, 200]
    assert CliRunner().invoke(main, ["--data", str(service.data), "key", "revoke", leaked]).exit_code == 0
    until(lambda: statuses(leaked) == [401, 401], REVOKED_WITHIN_S)
    assert statuses(leaked) == [401, 401]
    assert statuses(kept) == [200, 200]


def test_another_project_and_none_are_refused_in_the_same_words(service: Running, owner: Owner) -> None:
    token = f"Bearer {owner.key()}"

    def told(answer: httpx.Response) -> tuple[dict[str, Any], dict[str, str]]:
        body = problem(answer, 403)
        assert body.pop("requestId") == answer.headers["x-request-id"]
        own = ("x-request-id", "date", "content-length")
        return body, {name: value for name, value in answer.headers.items() if name not in own}

    for ask in (owner.export, owner.post):
        assert told(ask(token, PROJECT)) == told(ask(token, "nobody")) == told(ask(token, "No-Slug"))


def test_a_key_of_another_project_keeps_nothing(service: Running, owner: Owner) -> None:
    before = service.get("limit=250")
    problem(owner.post(f"Bearer {owner.key()}", PROJECT), 403)
    assert service.get("limit=250") == before


def test_a_read_key_reads_and_does_not_write(owner: Owner) -> None:
    token = f"Bearer {owner.key('read')}"
    assert owner.export(token).status_code == 200
    assert owner.classify(token).status_code == 200
    problem(owner.post(token), 403)
    assert owner.export(token).json()["totals"]["total"] == 0


def test_the_key_is_asked_for_before_anything_else(owner: Owner) -> None:
    """Who has no key learns nothing of what is there, or of what is wrong with the request."""
    for authorization in (None, "Bearer x", "Basic eDp5"):
        for query in ("limit=0", "colour=red", "dateFrom=x"):
            refused(owner.export(authorization, query=query))
        refused(owner.export(authorization, "nobody"))
        refused(owner.classify(authorization, query="colour=red"))
    hits = f"/v1/analytics/{owner.project}/hits"
    for kind, body in (("text/html", b"x"), ("application/json", b"["), ("application/json", 9_000_000 * b" ")):
        headers = {"Authorization": "Bearer x", "Content-Type": kind, "Content-Encoding": "br", "Idempotency-Key": ""}
        refused(owner.client.post(hits, content=body, headers=headers))
        refused(owner.client.post("/v1/analytics/nobody/hits", content=body, headers=headers))


def test_what_a_key_may_not_do_is_told_before_what_is_wrong_with_the_request(owner: Owner) -> None:
    read = f"Bearer {owner.key('read')}"
    problem(owner.export(read, "nobody", query="limit=0"), 403)
    problem(owner.client.post(f"/v1/analytics/{owner.project}/hits", content=b"[", headers=bearing(read)), 403)


def test_a_classification_is_answered_to_a_key_of_any_project(owner: Owner) -> None:
    answer = owner.classify(f"Bearer {owner.key('read')}")
    found = answer.json()
    assert (found["userAgent"], found["traffic"], found["agent"]) == ("GPTBot/1.3", "ai", "GPTBot")
    assert (found["operator"], found["purpose"]) == ("OpenAI", "training")
    assert found["rule"]


def test_a_key_is_never_in_the_log_nor_in_an_error_nor_on_disk(service: Running, owner: Owner) -> None:
    good, read, expired = owner.key(), owner.key("read"), expiring(owner.data, owner.project, time.time() - 1)
    answers = []
    for token in (good, read, expired, typo(good), good + "x"):
        for form in (f"Bearer {token}", token, f"Basic {token}"):
            answers += [owner.export(form), owner.export(form, "nobody"), owner.post(form), owner.classify(form)]
            answers += [owner.post(form, hit={"colour": "red"}), owner.export(form, query="limit=0")]
        answers.append(
            owner.client.get(f"/v1/analytics/{owner.project}/views", params={"key": token, "access_token": token})
        )
        answers.append(
            owner.client.get(f"/v1/analytics/{owner.project}/views", headers={"X-Api-Key": token, "Cookie": token})
        )
    assert {answer.status_code for answer in answers} == {200, 202, 400, 401, 403}
    last = answers[-1].headers["x-request-id"]
    until(lambda: last in service.log.read_text())

    said = service.log.read_text() + "".join(answer.text + str(answer.headers) for answer in answers)
    files = [file.read_bytes() for file in service.data.rglob("*") if file.is_file()]
    for token in (good, read, expired):
        secret = token.removeprefix("rdr_admin_")[:20]
        assert secret not in said
        assert not any(secret.encode() in content for content in files)


def test_a_key_of_the_scope_ingest_posts_hits_and_nothing_else(owner: Owner) -> None:
    token = f"Bearer {owner.key('ingest')}"
    assert owner.post(token).status_code == 202
    refused_by = [owner.export(token), owner.classify(token)]
    jobs = f"/v2/agent/{owner.project}/job"
    for method, path in (
        ("POST", jobs),
        ("GET", f"{jobs}s"),
        ("GET", f"{jobs}/1"),
        ("POST", f"{jobs}/1/message"),
        ("POST", f"{jobs}/1/cancel"),
        ("POST", f"{jobs}/1/archive"),
        ("GET", f"{jobs}/1/log"),
    ):
        refused_by.append(owner.client.request(method, path, json={"prompt": "x"}, headers=bearing(token)))
    for answer in refused_by:
        detail = problem(answer, 403)["detail"]
        assert re.fullmatch(r"the API key has the scope `ingest`; this needs `(read` or `write|write)`", detail)
    assert owner.client.get(f"{jobs}s", headers=bearing(f"Bearer {owner.key('write')}")).json()["jobs"] == []


def test_a_key_of_the_scope_read_posts_no_hits(owner: Owner) -> None:
    detail = problem(owner.post(f"Bearer {owner.key('read')}"), 403)["detail"]
    assert detail == "the API key has the scope `read`; this needs `ingest` or `write`"
