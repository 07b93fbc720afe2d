"""Operators' lists are downloaded with limits, and only acceptable content replaces a copy."""

import json
import ssl
from datetime import UTC, date, datetime
from pathlib import Path

import httpx
import msgspec
import pytest

from ingest.errors import ListUnavailable
from ingest.verification import refresh
from ingest.verification.address_lists import decode, encode
from ingest.verification.refresh import BYTES_MAX, Published, download, parse, refreshed
from tests.ingest.verification.operators import https_server
from tests.ingest.verification.operators.https_server import Answer, body, redirect, serving
from tests.ingest.verification.test_address_lists import LIST

NOW = datetime(2026, 11, 22, 23, tzinfo=UTC)
PREFIXES = [{"ipv4Prefix": "20.42.10.176/28"}, {"ipv6Prefix": "2a00:1450:4864::/48"}]


def published(*prefixes: object, created: str | None = "2026-11-20T10:00:00.123456") -> bytes:
    return json.dumps({"creationTime": created, "prefixes": prefixes}).encode()


@pytest.mark.parametrize(
    "prefixes",
    [
        PREFIXES,
        [PREFIXES[1], PREFIXES[0], PREFIXES[0]],
        [{"ipv4Prefix": "20.42.10.176/28", "ipv6Prefix": "2a00:1450:4864::/48"}],
        [{"ip_prefix": "20.42.10.176/28", "region": "x"}, {"ipv6_prefix": "2a00:1450:4864::/48"}],
        ["20.42.10.176/28", "2a00:1450:4864::/48"],
    ],
)
def test_formats_of_the_operators_are_read(prefixes: list[object]) -> None:
    created = datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert parse(published(*prefixes)) == Published(created, ("20.42.10.176/28", "2a00:1450:4864::/48"))


def test_file_without_a_creation_time_is_read() -> None:
    assert parse(published("20.42.10.176/28", created=None)).created is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"<html>", b"[]", b"{}", b'{"prefixes": []}', published({}), published(1), published({"ipv4Prefix": 1}),
        published("somewhere"), published("10.0.0.1/8"), published("0.0.0.0/0"),
        published("20.42.10.176/28", created="yesterday"), b"[" * 100_000,
        b'{"prefixes": [{"ipv4Prefix": ' + b"[" * 100_000,
    ],
)  # fmt: skip
def test_content_that_is_no_list_is_refused(content: bytes) -> None:
    with pytest.raises(ListUnavailable, match="the download is not a list of prefixes"):
        parse(content)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return https_server.certificate(tmp_path_factory.mktemp("tls"), "localhost")


def client(file: Path) -> httpx.Client:
    return httpx.Client(verify=ssl.create_default_context(cafile=str(file)))


def test_list_is_replaced_by_its_present_copy(file: Path) -> None:
    content = published({"ipv4Prefix": "9.9.9.0/24"}, PREFIXES[1])
    with serving(file, {"/bot.json": body(content)}) as port, client(file) as http:
        old = msgspec.structs.replace(LIST, source=f"https://localhost:{port}/bot.json", copies=2, remark="x")
        change = refreshed(old, http, NOW)
    assert (change.added, change.removed) == (["9.9.9.0/24"], ["20.42.10.176/28"])
    new = change.new
    assert (new.seen, new.copies, new.remark) == (date(2026, 11, 22), 1, "")
    assert new.created == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert (new.tokens, new.source) == (old.tokens, old.source)
    assert decode(encode(new), "") == new


def test_copy_older_than_the_present_one_is_refused(file: Path) -> None:
    content = published(*PREFIXES, created="2026-08-09T23:59:59Z")
    with serving(file, {"/bot.json": body(content)}) as port, client(file) as http:
        old = msgspec.structs.replace(LIST, source=f"https://localhost:{port}/bot.json")
        with pytest.raises(ListUnavailable, match=r"created on 2026-08-09, before the present copy \(2026-08-10\)"):
            refreshed(old, http, NOW)


def test_list_that_is_published_as_a_page_is_not_downloaded(file: Path) -> None:
    page = msgspec.structs.replace(LIST, is_json=False)
    with (
        client(file) as http,
        pytest.raises(ListUnavailable, match="publishes a page for people at https://example.com"),
    ):
        refreshed(page, http, NOW)


def test_redirect_on_the_same_host_is_followed(file: Path) -> None:
    with serving(file, {"/old": redirect("/new"), "/new": body(b"{}")}) as port, client(file) as http:
        assert download(f"https://localhost:{port}/old", http) == b"{}"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (redirect("https://other.example/list.json"), "redirects to https://other.example/list.json: only https"),
        (redirect("http://localhost/list.json"), "redirects to http://localhost/list.json: only https"),
        (redirect("//other.example/"), "redirects to https://other.example/: only https"),
        (redirect("file:///etc/passwd"), "redirects to file:///etc/passwd: only https"),
        (redirect("/list.json"), "redirects more than 3 times"),
        (body(b"x" * (BYTES_MAX + 1)), "larger than 5,242,880 bytes"),
        (https_server.not_found, "answered with status 404"),
    ],
)
def test_download_that_cannot_be_used_is_refused(file: Path, answer: Answer, message: str) -> None:
    with (
        serving(file, {"/list.json": answer}) as port,
        client(file) as http,
        pytest.raises(ListUnavailable, match=message),
    ):
        download(f"https://localhost:{port}/list.json", http)


def test_download_that_takes_too_long_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "DEADLINE_S", 0.0)
    late = pytest.raises(ListUnavailable, match="took longer than 0 s")
    with serving(file, {"/list.json": body(b"{}")}) as port, client(file) as http, late:
        download(f"https://localhost:{port}/list.json", http)


def test_url_without_tls_is_refused(file: Path) -> None:
    with client(file) as http, pytest.raises(ListUnavailable, match="only https URLs"):
        download("http://localhost/list.json", http)


def test_certificate_of_another_authority_is_refused(file: Path) -> None:
    with serving(file, {}) as port, httpx.Client() as http, pytest.raises(ListUnavailable, match="CERTIFICATE"):
        download(f"https://localhost:{port}/list.json", http)
