"""What the server processes of a service share. Its tests share one service: each has keys or addresses of its own."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.processes.running import Running, new_key, readership
from tests.processes.waiting import each_alone, started_processes, until, within_window

NO_TLS = False  # value of `verify`; True reads all certificates, which takes 20 ms
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
ORIGIN = "https://shop.example"
REVOKED_WITHIN_S = 5
FIRST_OWNER = {"name": "Ada", "new_password": "correct horse", "repeated": "correct horse"}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a service with two server processes."""
    environ = {"READERSHIP_BEACONS_PER_MINUTE": "5", "READERSHIP_JOBS_AT_ONCE": "0"}
    running = Running(tmp_path_factory.mktemp("two") / "data", 2, environ).start()
    yield running
    assert running.stop() == 0


def scraped(service: Running) -> str:
    return httpx.get(f"{service.url}/metrics", timeout=60, verify=NO_TLS).text


def counted(service: Running, name: str, **labels: str) -> float:
    samples = [each for family in text_string_to_metric_families(scraped(service)) for each in family.samples]
    return sum(each.value for each in samples if each.name == name and labels.items() <= each.labels.items())


def posts(service: Running) -> float:
    return counted(service, "readership_requests_total", method="POST", status="202")


def accepted(service: Running) -> float:
    return counted(service, "readership_hits_total", source="server", outcome="accepted")


def test_environment_of_a_server_process_has_neither_settings_nor_the_run_secret(two: Running) -> None:
    for process in started_processes(two):
        entries = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        names = {entry.partition(b"=")[0].decode() for entry in entries}
        assert not {name for name in names if name.startswith("READERSHIP_")} - {*os.environ, *two.environ}


@pytest.mark.long
def test_revoked_key_is_rejected_within_five_seconds_in_every_process(two: Running) -> None:
    leaked, other = new_key(two.data), new_key(two.data)

    def statuses(token: str) -> list[int]:
        """Return the status of a request to each process."""
        headers = {"Authorization": f"Bearer {token}"}
        return [httpx.get(two.views, headers=headers, verify=NO_TLS).status_code for _ in each_alone(two)]

    assert statuses(leaked) == statuses(other) == [200, 200]
    assert readership("--data", str(two.data), "key", "revoke", leaked).returncode == 0
    revoked_s, sent_s = time.monotonic(), []

    def is_rejected() -> bool:
        sent_s.append(time.monotonic())
        return statuses(leaked) == [401, 401]

    until(is_rejected)
    assert max(sent_s[:-1], default=0) < revoked_s + REVOKED_WITHIN_S, "the last requests with an answer"
    assert statuses(leaked) == [401, 401]
    assert statuses(other) == [200, 200]


def test_each_process_answers_with_the_metrics_of_all_processes(two: Running) -> None:
    *_, requests = [posts(two) for _ in each_alone(two)]  # each process has counted its earlier requests
    hits = accepted(two)
    for number, _ in enumerate(each_alone(two), start=1):
        assert two.post(number * [{"path": "/a", "userAgent": FIREFOX}]).status_code == 202
        # A request is counted after its response: wait for it, because this process is stopped next.
        until(lambda n=number: posts(two) == requests + n)
    for _ in each_alone(two):
        assert (accepted(two), posts(two)) == (hits + 1 + 2, requests + 2)


@pytest.mark.long
def test_moment_names_the_same_hits_on_another_server_process(two: Running) -> None:
    headers = {"Authorization": f"Bearer {new_key(two.data, 'moments')}"}
    site = f"{two.url}/v1/analytics/moments"

    def post(path: str) -> None:
        hit = {"path": path, "userAgent": FIREFOX}
        assert httpx.post(f"{site}/hits", json=hit, headers=headers, verify=NO_TLS).status_code == 202

    def views(query: str = "") -> httpx.Response:
        return httpx.get(f"{site}/views?{query}", headers=headers, verify=NO_TLS)

    post("/a")
    first = views()
    post("/b")
    for _ in each_alone(two):
        assert views(f"asOf={first.headers['x-as-of']}").content == first.content
        assert len(views().json()["views"]) == 2


@pytest.mark.long
def test_rate_limit_of_an_address_is_shared_by_all_processes(two: Running) -> None:
    statuses: list[int] = []
    before = two.get()["totals"]["human"]

    def send(address: str, **headers: str) -> httpx.Response:
        """Send a beacon over a new connection."""
        headers = {"Content-Type": "text/plain", "User-Agent": FIREFOX, "X-Forwarded-For": address, **headers}
        response = httpx.post(two.hits, content=b'{"path": "/a"}', headers=headers, verify=NO_TLS)
        statuses.append(response.status_code)
        return response

    def send_all(address: str) -> tuple[list[httpx.Response], httpx.Response]:
        """Send beacons to each process, then two of other senders and a pixel."""
        responses = [send(address) for _ in each_alone(two) for _ in range(4)]
        of_page, chosen = send(address, Origin=ORIGIN), send(f"198.51.100.1, {address}")
        pixel = two.hits.replace("/hits", "/pixel.gif?path=/a")
        return [*responses, chosen, httpx.get(pixel, headers={"X-Forwarded-For": address})], of_page

    responses, of_page = within_window(send_all)
    assert [response.status_code for response in responses[:5]] == 5 * [202]
    for response in responses[5:]:  # also of the client that chose an address, and of the pixel
        assert (response.status_code, response.headers["content-type"]) == (429, "application/problem+json")
        assert 1 <= int(response.headers["retry-after"]) <= 60
    assert (of_page.status_code, of_page.headers["access-control-allow-origin"]) == (429, ORIGIN)
    for network in ("198.51.100.{}", "2001:db8:{}::1"):
        of_client = within_window(lambda address: [send(network.format(address[-1])).status_code for _ in range(6)])  # noqa: B023
        assert of_client == 5 * [202] + [429]
    of_server = {**two.auth, "X-Forwarded-For": responses[0].request.headers["X-Forwarded-For"]}
    hit = {"path": "/a", "userAgent": FIREFOX}
    assert [httpx.post(two.hits, json=hit, headers=of_server).status_code for _ in range(10)] == 10 * [202]
    assert two.get()["totals"]["human"] == before + statuses.count(202) + 10


@pytest.mark.long
def test_sessions_and_limits_of_sign_ins_are_shared_and_the_log_has_no_token(two: Running) -> None:
    def post(path: str, **values: str) -> httpx.Response:
        """Post a form over a new connection, which any of the server processes accepts."""
        headers = {"Sec-Fetch-Site": "same-origin", "X-Forwarded-For": "203.0.113.99"}
        return httpx.post(f"{two.url}{path}", data=values, headers=headers, timeout=60, verify=NO_TLS)

    link = re.findall(r"/welcome/[\w-]{43}", two.log.read_text())[0]
    assert httpx.get(f"{two.url}{link}").status_code == 200
    entered = post(link, **FIRST_OWNER)
    assert entered.status_code == 303
    cookies = dict(entered.cookies)
    assert cookies.keys() == {"readership_session"}
    for _ in range(8):
        assert httpx.get(f"{two.url}/account", cookies=cookies).status_code == 200
    wrong = [post("/sign-in", name="Ada", password="wrong horse").status_code for _ in range(8)]
    assert wrong == [422] * 5 + [429] * 3
    assert post("/sign-in", name="Ada", password="correct horse").status_code == 429
    until(lambda: two.log.read_text().count("/sign-in") == 9)
    text = two.log.read_text()
    assert text.count("/welcome/***") == 2
    assert text.count(link) == 1
    assert cookies["readership_session"] not in text
    assert "correct horse" not in text
