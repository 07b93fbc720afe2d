"""A running service: health, metrics, log, responses to unknown paths, start and end."""

import json
import re
import secrets
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from agent.worker import threads
from api import settings
from api.cli.main import main
from tests.processes.running import COMMAND, Running, new_job, new_key, readership_process
from tests.processes.state import listens
from tests.processes.waiting import processes_of, until
from tests.stores import sql
from warehouse.control import database
from warehouse.lake import delta_table

NO_TLS = False  # for `verify`: otherwise each client reads all certificates first, which takes 20 ms
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GIF = "/v1/analytics/site/pixel.gif"
HITS, VIEWS = "/v1/analytics/site/hits", "/v1/analytics/site/views"


@pytest.fixture
def client(service: Running) -> Iterator[httpx.Client]:
    """Return a client with a key of the project `site`."""
    with httpx.Client(base_url=service.url, headers=service.auth, timeout=60, verify=NO_TLS) as client:
        yield client


def view(path: str, **fields: Any) -> dict[str, Any]:
    """Return a hit of a person."""
    return {"path": path, "userAgent": FIREFOX, **fields}


def problem(answer: httpx.Response, status: int) -> Any:
    """Return the body of an RFC 9457 problem with the expected status."""
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    return answer.json()


def counted(url: str, name: str, **labels: str) -> float:
    """Return the sum of a metric's samples with these labels, read over a new connection."""
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics", verify=NO_TLS).text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def logged(service: Running, request_id: str) -> dict[str, Any]:
    """Return the line of the access log with this request id."""
    lines = until(lambda: [line for line in service.log.read_bytes().splitlines() if request_id.encode() in line])
    assert len(lines) == 1
    line: dict[str, Any] = json.loads(lines[0])
    return line


def test_health_and_readiness_need_no_key(service: Running) -> None:
    alive = httpx.get(f"{service.url}/healthz")
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    ready = httpx.get(f"{service.url}/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")
    assert set(ready.json()["checks"].values()) == {"ok"}


@pytest.mark.long
def test_metrics_count_hits_rejections_and_requests(service: Running, client: httpx.Client) -> None:
    def hits(outcome: str, source: str = "server") -> float:
        return counted(service.url, "readership_hits_total", source=source, outcome=outcome)

    def now() -> list[float]:
        rejected = counted(service.url, "readership_rejected_hits_total", field="status")
        requests = counted(service.url, "readership_requests_total", method="POST", status="202")
        return [hits("accepted"), hits("duplicate"), hits("accepted", "beacon"), rejected, requests]

    before, event = now(), secrets.token_hex(8)
    rows = [view("/metrics", **fields) for fields in ({}, {"eventId": event}, {"eventId": event}, {"status": 0})]
    assert client.post(HITS, json=rows).status_code == 202
    assert httpx.post(service.hits, json={"path": "/metrics"}).status_code == 202
    until(lambda: now() == [at + more for at, more in zip(before, [2, 1, 1, 1, 2], strict=True)])
    assert counted(service.url, "readership_waiting_hits") >= 3


def test_rejected_hit_is_counted_under_its_invalid_field(service: Running, client: httpx.Client) -> None:
    invalid = {"address": "here", "accept": "a\0b", "headers": {"no name": "1"}, "path": ""}

    def now() -> list[float]:
        return [counted(service.url, "readership_rejected_hits_total", field=field) for field in invalid]

    before = now()
    answer = client.post(HITS, json=[view("/metrics"), *({**view("/m"), each: invalid[each]} for each in invalid)])
    assert [each["field"] for each in answer.json()["rejected"]] == [*invalid]
    until(lambda: now() == [each + 1 for each in before])


def test_text_chosen_by_a_client_is_no_label_of_a_metric(service: Running, client: httpx.Client) -> None:
    text = f"x{secrets.token_hex(8)}"
    client.get(f"/{text}")
    client.get(f"/v1/analytics/{text}/views")
    client.post(HITS, json={text: 1})
    client.request("PROPFIND", f"/{text}")
    assert text not in client.get("/metrics").text
    assert "PROPFIND" not in client.get("/metrics").text


def test_unknown_path_is_answered_404(client: httpx.Client) -> None:
    for path in ("/v1", "/v1/analytics", "/v1/analytics/site", "/v3/analytics/site/views", "/hits", "/%00"):
        for method in ("GET", "POST", "DELETE"):
            problem(client.request(method, path), 404)


def test_other_method_is_answered_405_with_the_allowed_ones(client: httpx.Client) -> None:
    for path in (HITS, GIF, VIEWS, "/v1/classify", "/beacon.js", "/healthz", "/metrics"):
        there = {"POST", "OPTIONS"} if path == HITS else {"GET", "HEAD"}
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - there:
            answer = client.request(method, path)
            problem(answer, 405)
            assert {each.strip() for each in answer.headers["allow"].split(",")} == there


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/beacon.js", VIEWS, "/v1/classify?userAgent=x", "/nowhere", f"{VIEWS}?limit=0"]
)
def test_head_is_a_get_without_its_body(client: httpx.Client, path: str) -> None:
    own = ("date", "x-request-id", "x-as-of", "content-length")
    get, head = (client.request(method, path) for method in ("GET", "HEAD"))
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert {name: value for name, value in head.headers.items() if name not in own} == {
        name: value for name, value in get.headers.items() if name not in own
    }


def test_access_log_has_one_json_line_per_request_without_its_query(service: Running, client: httpx.Client) -> None:
    private = secrets.token_hex(8)
    requests = [
        ("GET", f"{VIEWS}?dateFrom={private}", 400),
        ("GET", f"{GIF}?path=/{private}", 200),
        ("GET", f"/v1/classify?userAgent={private}", 200),
        ("POST", f"{HITS}?{private}", 202),
        ("GET", "/next\u0085line\u2028separator", 404),
    ]
    for number, (method, path, status) in enumerate(requests):
        request_id = f"{private[::-1]}-{number}"
        body = view(f"/{private}", referrer=f"https://example.com/{private}") if method == "POST" else None
        headers = {"X-Request-Id": request_id, "Referer": f"https://example.com/{private}"}
        assert client.request(method, path, json=body, headers=headers).status_code == status
        line = logged(service, request_id)
        assert (line["method"], line["path"], line["status"]) == (method, path.partition("?")[0], status)
        assert line["ms"] >= 0
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", line["time"])
    assert private not in service.log.read_text()
    first, *rest = map(json.loads, service.log.read_bytes().splitlines())
    assert service.url in first["message"]
    assert all({"time", "level", "logger"} <= line.keys() for line in (first, *rest))


def test_access_log_names_the_problem_and_no_text_that_the_client_chose(service: Running, client: httpx.Client) -> None:
    private, unique_id = secrets.token_hex(8), secrets.token_hex(8)
    headers = {"X-Request-Id": unique_id}
    problem(client.get(f"{VIEWS}?limit={private}&{private}=1", headers=headers), 400)
    line = logged(service, unique_id)
    assert (line["problem"], line["fields"]) == ("invalid-parameter", ["limit", "other"])
    assert "detail" not in line
    unique_id = headers["X-Request-Id"] = secrets.token_hex(8)
    problem(client.post(HITS, json={"path": private, "status": private, private: private}, headers=headers), 400)
    assert logged(service, unique_id)["problem"] == "invalid-body"
    unique_id = headers["X-Request-Id"] = secrets.token_hex(8)
    problem(client.get("/v3", headers=headers), 404)
    assert (logged(service, unique_id)["problem"], logged(service, unique_id)["detail"]) == (
        "not-found",
        "there is nothing at this path",
    )
    unique_id = headers["X-Request-Id"] = secrets.token_hex(8)
    assert client.get("/healthz", headers=headers).status_code == 200
    assert {"problem", "fields", "detail"}.isdisjoint(logged(service, unique_id))
    assert private not in service.log.read_text()


def open_post(service: Running, body: bytes) -> socket.socket:
    """Start a post in chunks, wait until the service reads the body, and send its first half."""
    url = httpx.URL(service.url)
    connection = socket.create_connection((url.host, url.port), timeout=30)
    headers = {
        "Host": url.host,
        "Authorization": f"Bearer {service.key}",
        "Content-Type": "application/json",
        "Transfer-Encoding": "chunked",
        "Expect": "100-continue",
    }
    connection.sendall(f"POST {HITS} HTTP/1.1\r\n".encode())
    connection.sendall("".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode() + b"\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
    connection.sendall(chunk(body[: len(body) // 2]))
    return connection


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def close_post(connection: socket.socket, body: bytes) -> bytes:
    """Send the second half; return the response."""
    connection.sendall(chunk(body[len(body) // 2 :]) + chunk(b""))
    answer = b""
    while piece := connection.recv(65_536):
        answer += piece
    connection.close()
    return answer


@pytest.mark.long
@pytest.mark.parametrize(("processes", "number"), [(2, signal.SIGTERM), (1, signal.SIGINT)])
def test_signal_ends_the_service_after_the_request_in_flight_and_no_agent_job_starts_meanwhile(
    start: Callable[..., Running], processes: int, number: signal.Signals
) -> None:
    service = start(processes=processes)
    body = json.dumps(view("/slow", timestamp="2025-03-01T12:00:00Z")).encode()
    slow = open_post(service, body)
    assert service.process is not None
    servers = processes_of(service) or [service.process.pid]
    service.process.send_signal(number)
    until(lambda: not any(listens(each, httpx.URL(service.url).port or 0) for each in servers))
    id = new_job(service.data)
    threading.Event().wait(10 * threads.POLL_S)  # long enough for a worker to start the turn
    answer = close_post(slow, body)
    assert answer.startswith(b"HTTP/1.1 202 ")
    assert answer.endswith(b'{"accepted":1,"duplicates":0,"rejected":[]}')
    assert service.process.wait(60) == 0
    assert list((service.data / "lake" / "hits" / "date=2025-03-01").glob("*.parquet"))
    assert "Traceback" not in service.log.read_text()
    engine = database.connect(settings.read({}, service.data).database_url)
    turns = sql.rows(engine, "SELECT state, started_us FROM turns WHERE job_id = :id", id=id)
    engine.close()
    assert turns == [("queued", None)]


@pytest.mark.long
def test_worker_serves_its_metrics_at_the_chosen_port(tmp_path: Path) -> None:
    service = Running(tmp_path / "data")
    new_key(service.data)
    new_job(service.data)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = service.run("worker", "--metrics-port", port)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"cannot listen at 127.0.0.1:{port}" in refused.stderr
        assert "--metrics-port" in refused.stderr
    process = subprocess.Popen([COMMAND, "--data", service.data, "worker", "--metrics-port", port])
    try:
        until(lambda: "readership_job_turn_seconds_count" in metrics_at(port))
    finally:
        process.terminate()
    assert process.wait(60) == 0


def metrics_at(port: str) -> str:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    return ""


@pytest.mark.long
def test_client_that_stalls_within_its_body_does_not_delay_the_end(start: Callable[..., Running]) -> None:
    service = start(processes=2)
    with open_post(service, json.dumps(view("/stalled")).encode()) as stalled:
        assert service.stop() == 0
        assert stalled.recv(65_536).startswith(b"HTTP/1.1 503 ")
        assert "traceback" not in service.log.read_text().lower()


def test_client_that_disconnects_is_no_error(service: Running) -> None:
    before = counted(service.url, "readership_requests_total", method="POST")
    for _ in range(3):
        open_post(service, json.dumps(view("/hung-up")).encode()).close()
    until(lambda: counted(service.url, "readership_requests_total", method="POST") == before + 3)
    assert counted(service.url, "readership_requests_total", status="500") == 0
    assert "traceback" not in service.log.read_text().lower()
    assert "/hung-up" not in str(service.get("limit=250"))


@pytest.mark.long
def test_full_backlog_refuses_posts_until_the_hot_log_is_loaded(start: Callable[..., Running]) -> None:
    service = start(READERSHIP_BACKLOG_ROWS_MAX="10000", READERSHIP_LOAD_EVERY_S="3600")
    until((service.data / "lake" / delta_table.LAST_VACUUM).exists)  # the first vacuum loads the hot log
    assert service.post(9_995 * [view("/a")]).status_code == 202
    refused = service.post(6 * [view("/a")])
    problem(refused, 503)
    assert int(refused.headers["retry-after"]) > 0
    assert service.get()["totals"]["total"] == 9_995
    assert service.post(5 * [view("/a")]).status_code == 202
    ready = until(lambda: answer if (answer := httpx.get(f"{service.url}/readyz")).status_code == 503 else None)
    assert ready.json()["status"] == "failed"
    problem(until(lambda: answer if (answer := service.post(view("/b"))).status_code == 503 else None), 503)
    stored = service.get()["totals"]["total"]
    assert CliRunner().invoke(main, ["--data", str(service.data), "flush"]).exit_code == 0
    until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
    until(lambda: service.post(view("/c")).status_code == 202)
    assert service.get()["totals"]["total"] == stored + 1


@pytest.mark.long
def test_port_in_use_is_an_error_and_the_running_service_goes_on(service: Running, tmp_path: Path) -> None:
    port = str(httpx.URL(service.url).port)
    done = readership_process("--data", str(tmp_path / "data"), "serve", "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"Error: [^\n]*\b{port}\b[^\n]*\n", done.stderr)
    assert httpx.get(f"{service.url}/healthz", timeout=60, verify=NO_TLS).status_code == 200


@pytest.mark.long
def test_data_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = readership_process("--data", str(tmp_path / "file" / "data"), "serve")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"Error: [^\n]*/file: there is a file in place of a folder\n", done.stderr)
