"""Lines of the access log have no text that the client chose, except the path, the request id and a refused origin."""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import Iterator
from select import PIPE_BUF

import msgspec
import pytest

from api.http import access_log
from api.http.problems import Problem


@pytest.fixture(autouse=True)
def info() -> Iterator[None]:
    """Log at the level `info` during the test."""
    level = access_log.LOG.level
    access_log.LOG.setLevel(logging.INFO)
    yield
    access_log.LOG.setLevel(level)


async def log(*paths: str, problem: Problem | None = None) -> None:
    """Log requests that took 1.23456 s and are answered in one iteration of the event loop."""
    for path in paths:
        state = {"request_id": "abc", "problem": problem}
        access_log.write({"type": "http", "method": "GET", "path": path, "state": state}, 200, 1.23456)
    await asyncio.sleep(0)


def line_of(capfd: pytest.CaptureFixture[str], problem: Problem | None = None, path: str = "/a") -> dict[str, object]:
    asyncio.run(log(path, problem=problem))
    line: dict[str, object] = json.loads(capfd.readouterr().err)
    assert line.pop("time")
    return line


def test_token_of_a_link_is_not_logged_and_a_long_path_is_cut(capfd: pytest.CaptureFixture[str]) -> None:
    for path, logged in {
        "/welcome/s3cret": "/welcome/***",
        "/shared/s3cret": "/shared/***",
        "/shared/s3cret/views.csv": "/shared/***/views.csv",
        "/welcome": "/welcome",
        "/projects/shared/keys": "/projects/shared/keys",
        "/" + "a" * 60_000: "/" + "a" * (access_log.PATH_BYTES_MAX - 1),
    }.items():
        assert line_of(capfd, path=path)["path"] == logged


@pytest.mark.parametrize("character", ["a", "é", "\x01", "\U0001f600"])
def test_line_of_a_long_path_fits_into_one_write_of_a_pipe(capfd: pytest.CaptureFixture[str], character: str) -> None:
    asyncio.run(log("/" + character * 60_000))
    line = capfd.readouterr().err
    path = json.loads(line)["path"]
    assert path == "/" + character * (len(path) - 1)
    assert 1_900 < len(msgspec.json.encode(path)) <= access_log.PATH_BYTES_MAX + 2
    assert len(line.encode()) < PIPE_BUF


def test_detail_is_logged_only_for_kinds_that_do_not_quote_the_request(capfd: pytest.CaptureFixture[str]) -> None:
    line = line_of(capfd, Problem("overloaded", "disk full: " + "x" * 1000))
    assert line["detail"] == "disk full: " + "x" * (access_log.DETAIL_CHARACTERS_MAX - len("disk full: "))
    assert "detail" not in line_of(capfd, Problem("invalid-parameter", "the value 7 is too large"))


def test_level_above_info_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    access_log.LOG.setLevel(logging.WARNING)
    asyncio.run(log("/"))
    assert capfd.readouterr().err == ""


def test_lines_of_requests_that_are_answered_together_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"/{number:02}" + "a" * 900 for number in range(10)]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, open(theirs.fileno(), "w", closefd=False) as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        asyncio.run(log(*paths))
        writes = [ours.recv(1 << 20) for _ in range(4)]
    assert [json.loads(line)["path"] for line in b"".join(writes).splitlines()] == paths
    assert all(len(write) <= PIPE_BUF and write.endswith(b"\n") for write in writes)
