"""Key directories are fetched from the allow-list only, with limits, and cached."""

import logging
import socket
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest

from ingest.errors import DirectoryUnavailable
from ingest.verification import directories
from ingest.verification.directories import BYTES_MAX, CACHE_S, PATH, RETRY_S, KeyDirectories, fetch_directory
from tests.ingest.verification.operators import https_server
from tests.ingest.verification.operators.https_server import Answer, body, redirect, serving
from tests.ingest.verification.operators.signing import HOST, Signer

SIGNER = Signer()


class Fetch:
    """Fetch that counts its calls and returns, or raises, the next of its answers."""

    def __init__(self, *answers: bytes | DirectoryUnavailable) -> None:
        self.answers = list(answers)
        self.hosts: list[str] = []

    def __call__(self, host: str) -> bytes:
        self.hosts.append(host)
        answer = self.answers.pop(0)
        if isinstance(answer, DirectoryUnavailable):
            raise answer
        return answer


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_directory_is_fetched_once_and_again_when_its_time_is_over() -> None:
    fetch, clock = Fetch(SIGNER.directory(), Signer(2).directory()), Clock()
    cached = KeyDirectories([HOST], fetch, wait_s=10, clock=clock)
    for _ in range(3):
        assert set(cached.keys(HOST) or ()) == {SIGNER.key_id}
    clock.now += CACHE_S
    assert set(cached.keys(HOST) or ()) == {Signer(2).key_id}
    assert fetch.hosts == [HOST, HOST]


def test_failure_is_cached_for_a_shorter_time_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    fetch, clock = Fetch(DirectoryUnavailable("status 500"), b"[]", SIGNER.directory()), Clock()
    cached = KeyDirectories([HOST], fetch, wait_s=10, clock=clock)
    with caplog.at_level(logging.WARNING, "readership.verification"):
        assert cached.keys(HOST) is None
        assert cached.keys(HOST) is None
        clock.now += RETRY_S
        assert cached.keys(HOST) is None
    assert len(fetch.hosts) == 2
    assert f"the key directory of {HOST} cannot be used: status 500; next attempt in 300 s" in caplog.messages
    clock.now += RETRY_S
    assert cached.keys(HOST) is not None


def test_unexpected_error_of_a_fetch_is_raised_once_and_a_later_fetch_succeeds() -> None:
    answers = [SIGNER.directory()]

    def fetch(host: str) -> bytes:
        if answers:
            return answers.pop()
        raise KeyError(host)

    clock = Clock()
    cached = KeyDirectories([HOST], fetch, wait_s=10, clock=clock)
    assert cached.keys(HOST) is not None
    clock.now += CACHE_S
    with pytest.raises(KeyError):
        cached.keys(HOST)
    assert cached.keys(HOST) is None
    answers.append(SIGNER.directory())
    clock.now += RETRY_S
    assert cached.keys(HOST) is not None


def test_host_that_is_not_in_the_allow_list_is_not_fetched() -> None:
    fetch = Fetch()
    assert KeyDirectories([HOST], fetch, wait_s=10).keys("signer.example") is None
    assert fetch.hosts == []


def test_directory_that_never_answers_does_not_block_and_is_fetched_once() -> None:
    asked, release, hosts = Event(), Event(), []

    def fetch(host: str) -> bytes:
        hosts.append(host)
        asked.set()
        assert release.wait(30)
        return SIGNER.directory()

    cached = KeyDirectories([HOST], fetch)
    for _ in range(100):
        assert cached.keys(HOST) is None
    assert asked.wait(30)
    assert hosts == [HOST]
    release.set()
    cached.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return https_server.certificate(tmp_path_factory.mktemp("tls"), HOST)


@pytest.fixture(scope="module")
def trusted(file: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(file))


def local(host: str) -> list[str]:
    return ["127.0.0.1"]


def fetched(file: Path, trusted: ssl.SSLContext, answer: Answer) -> bytes:
    with serving(file, {PATH: answer}) as port:
        return fetch_directory(HOST, local, trusted, port)


def test_directory_is_fetched_by_the_name_of_its_host(file: Path, trusted: ssl.SSLContext) -> None:
    seen = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        seen.append(request.headers["Host"])
        body(SIGNER.directory())(request)

    assert fetched(file, trusted, answer) == SIGNER.directory()
    assert seen == [HOST]


def with_status(status: int) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def cut_off(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b"{")
    request.close_connection = True


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (redirect(f"https://{HOST}/keys"), "status 302"),
        (redirect("http://127.0.0.1/"), "status 302"),
        (with_status(404), "status 404"),
        (with_status(204), "status 204"),
        (body(b"x" * (BYTES_MAX + 1)), "larger than 65,536 bytes"),
        (body(b"x" * 10_000_000), "larger than 65,536 bytes"),
        (body(b"", Content_Encoding="gzip"), "compressed its answer"),
        (cut_off, "the request failed: RemoteProtocolError"),
    ],
)
def test_answer_that_is_no_directory_is_refused(
    file: Path, trusted: ssl.SSLContext, answer: Answer, message: str
) -> None:
    with pytest.raises(DirectoryUnavailable, match=message):
        fetched(file, trusted, answer)


def test_certificate_of_another_authority_is_refused(file: Path) -> None:
    with (
        serving(file, {PATH: body(SIGNER.directory())}) as port,
        pytest.raises(DirectoryUnavailable, match="CERTIFICATE"),
    ):
        fetch_directory(HOST, local, None, port)


@pytest.fixture
def silent() -> Iterator[int]:
    """Yield the port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_server_that_never_answers_is_given_up(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "IDLE_S", 0.05)
    with pytest.raises(DirectoryUnavailable, match="Timeout"):
        fetch_directory(HOST, local, None, silent)


def test_server_that_sends_slowly_is_given_up(
    file: Path, trusted: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "DEADLINE_S", 0.0)
    with pytest.raises(DirectoryUnavailable, match="the answer took longer than 0 s"):
        fetched(file, trusted, body(SIGNER.directory()))


def test_host_without_an_address_or_with_one_in_a_local_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for host, message in (("localhost", "an address of a local network"), ("a" * 64, "the DNS lookup failed")):
        with pytest.raises(DirectoryUnavailable, match=message):
            fetch_directory(host)
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 443)) for each in ("9.9.9.9", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: addresses)
    with pytest.raises(DirectoryUnavailable, match="an address of a local network"):
        fetch_directory(HOST)
