"""Lines of the access log have no text that the client chose, except the path, the request id and a refused origin."""

import json
import logging
from collections.abc import Iterator

import pytest

from api.http import access_log
from api.http.problems import Fault, Problem


@pytest.fixture(autouse=True)
def info() -> Iterator[None]:
    """Log at the level `info` during the test."""
    level = access_log.LOG.level
    access_log.LOG.setLevel(logging.INFO)
    yield
    access_log.LOG.setLevel(level)


def line_of(capfd: pytest.CaptureFixture[str], problem: Problem | None = None, path: str = "/a") -> dict[str, object]:
    """Return the line of a request that took 1.23456 s."""
    state = {"request_id": "abc", "problem": problem}
    access_log.write({"type": "http", "method": "GET", "path": path, "state": state}, 200, 1.23456)
    line: dict[str, object] = json.loads(capfd.readouterr().err)
    assert line.pop("time")
    return line


def test_line_of_a_request_has_its_method_path_status_and_duration(capfd: pytest.CaptureFixture[str]) -> None:
    assert line_of(capfd) == {
        "level": "info",
        "logger": "readership.access",
        "method": "GET",
        "path": "/a",
        "status": 200,
        "ms": 1234.56,
        "requestId": "abc",
    }


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        ("/welcome/s3cret", "/welcome/***"),
        ("/shared/s3cret", "/shared/***"),
        ("/shared/s3cret/views.csv", "/shared/***/views.csv"),
        ("/welcome", "/welcome"),
        ("/projects/shared/keys", "/projects/shared/keys"),
    ],
)
def test_token_of_a_link_is_not_logged(capfd: pytest.CaptureFixture[str], path: str, logged: str) -> None:
    assert line_of(capfd, path=path)["path"] == logged


def test_long_path_is_cut(capfd: pytest.CaptureFixture[str]) -> None:
    assert line_of(capfd, path="/" + "a" * 60_000)["path"] == "/" + "a" * (access_log.PATH_CHARACTERS_MAX - 1)


def test_line_of_a_problem_names_known_fields_and_hides_others(capfd: pytest.CaptureFixture[str]) -> None:
    faults = [Fault("bad", parameter="limit"), Fault("bad", pointer="/3/path"), Fault("bad", parameter="secret")]
    line = line_of(capfd, Problem("invalid-parameter", "the query has secret=1", faults))
    assert (line["problem"], line["fields"]) == ("invalid-parameter", ["limit", "other", "path"])
    assert "secret" not in str(line)


def test_detail_is_logged_only_for_kinds_that_do_not_quote_the_request(capfd: pytest.CaptureFixture[str]) -> None:
    line = line_of(capfd, Problem("overloaded", "disk full: " + "x" * 1000))
    assert line["detail"] == "disk full: " + "x" * (access_log.DETAIL_CHARACTERS_MAX - len("disk full: "))
    assert "detail" not in line_of(capfd, Problem("invalid-parameter", "the value 7 is too large"))


def test_level_above_info_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    access_log.LOG.setLevel(logging.WARNING)
    state = {"request_id": "abc", "problem": None}
    access_log.write({"type": "http", "method": "GET", "path": "/", "state": state}, 200, 0.1)
    assert capfd.readouterr().err == ""
