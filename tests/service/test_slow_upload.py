"""If a project is deleted and created again while the body of a request arrives, nothing of the request is stored."""

import json
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from api.http.body import RECHECK_AFTER_S
from tests.processes.running import PROJECT, Running, new_job, new_key
from tests.processes.waiting import until


def begin(service: Running, path: str, body: bytes, **headers: str) -> socket.socket:
    """Send the head, wait until the service reads the body, and send its first half."""
    url = httpx.URL(service.url)
    connection = socket.create_connection((url.host, url.port), timeout=60)
    sent = {"Host": url.host, "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    connection.sendall(f"POST {path} HTTP/1.1\r\n{head}Expect: 100-continue\r\nConnection: close\r\n\r\n".encode())
    assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
    connection.sendall(body[: len(body) // 2])
    return connection


def end(connection: socket.socket, body: bytes) -> tuple[int, Any]:
    """Send the second half; return the status and the JSON of the response."""
    connection.sendall(body[len(body) // 2 :])
    answer = b""
    while piece := connection.recv(65_536):
        answer += piece
    connection.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(content)


def replace_project(service: Running) -> None:
    """Delete the project and create another one with the same id."""
    assert service.run("project", "delete", PROJECT, "--yes").returncode == 0
    service.key = new_key(service.data)


HIT = json.dumps({"path": "/late", "userAgent": "GPTBot/1.2", "eventId": "late"}).encode()
BEACON = json.dumps({"path": "/late"}).encode()
PROMPT = json.dumps({"prompt": "late"}).encode()
HITS, JOBS = f"/v1/analytics/{PROJECT}/hits", f"/v2/agent/{PROJECT}/job"
UPLOADS = "uploads"
"""Project in the service that other tests use, too."""


@pytest.mark.long
def test_slow_upload_does_not_reach_a_new_project_under_the_same_id(start: Callable[..., Running]) -> None:
    service = start(READERSHIP_JOBS_AT_ONCE="0")
    new_job(service.data)
    post, prompt = (begin(service, path, body, **service.auth) for path, body in ((HITS, HIT), (JOBS, PROMPT)))
    beacon = begin(service, HITS, BEACON)
    replace_project(service)
    new_job(service.data)
    answers = [end(*each) for each in ((post, HIT), (prompt, PROMPT), (beacon, BEACON))]
    assert [(status, problem["type"]) for status, problem in answers] == [
        (401, "/docs#unauthenticated"),
        (401, "/docs#unauthenticated"),
        (404, "/docs#not-found"),
    ]
    answer = service.post(json.loads(HIT))
    assert answer.json() == {"accepted": 1, "duplicates": 0, "rejected": []}, "its event id is new"
    assert service.get()["totals"]["total"] == 1
    jobs = httpx.get(f"{service.url}/v2/agent/{PROJECT}/jobs", headers=service.auth).json()["jobs"]
    assert len(jobs) == 1


@pytest.mark.long
def test_slow_upload_is_stored_unless_its_key_is_revoked_meanwhile(service: Running) -> None:
    """The service checks each key again: one with the scope ingest, and one that is revoked."""
    site, began_s = f"/v1/analytics/{UPLOADS}", time.monotonic()
    revoked, reading = (f"Bearer {new_key(service.data, UPLOADS)}" for _ in range(2))
    ingest = f"Bearer {new_key(service.data, UPLOADS, 'ingest')}"
    refused, stored = (begin(service, f"{site}/hits", HIT, Authorization=key) for key in (revoked, ingest))
    assert service.run("key", "revoke", revoked.removeprefix("Bearer ")).returncode == 0

    def views(key: str) -> httpx.Response:
        return httpx.get(f"{service.url}{site}/views", headers={"Authorization": key}, timeout=60)

    until(lambda: views(revoked).status_code == 401)
    until(lambda: time.monotonic() - began_s > 2 * RECHECK_AFTER_S)
    status, problem = end(refused, HIT)
    assert (status, problem["type"]) == (401, "/docs#unauthenticated")
    assert views(reading).json()["totals"]["total"] == 0
    assert end(stored, HIT) == (202, {"accepted": 1, "duplicates": 0, "rejected": []})
    assert views(reading).json()["totals"]["total"] == 1
