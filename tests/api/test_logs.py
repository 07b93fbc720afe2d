"""Log records of whole processes: one format from the first line to the last, and one line a minute for an outage."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.logs import OUTAGE_EVERY_S, Outages
from ingest.verification.address_lists import age_warning, shipped
from tests.processes.running import COMMAND, PROJECT, new_key
from tests.processes.waiting import killed_on_failure, until


def records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (("worker",), "The worker runs, data in "),
        (("import", PROJECT, "--follow", "access.log"), "Following access.log; Ctrl-C ends it"),
        (("serve", "--port", "0"), "Readership listens at http://127.0.0.1:"),
        (("serve", "--port", "0", "--host", "::"), "Readership listens at http://"),
        (("serve", "--port", "0", "--host", "0.0.0.0", "--workers", "2"), "Readership listens at http://"),
    ],
)
def test_every_line_is_a_record_from_the_first_to_the_last_also_the_warning_about_the_data_folder(
    tmp_path: Path, arguments: tuple[str, ...], first: str
) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    new_key(data)
    data.chmod(0o755)
    (data / "mail.txt").touch()
    (tmp_path / "access.log").write_text("")
    argv = [COMMAND, "--data", data, *arguments]
    with log.open("wb") as stderr:
        process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=stderr)
        try:
            until(lambda: log.read_bytes().count(b"\n") > 1)
            if arguments[0] == "serve":
                until(lambda: "listens at" in log.read_text())
                local = "http://[::1]:" if "::" in arguments else "http://127.0.0.1:"
                check_urls(log, local, is_on_all_interfaces="--host" in arguments)
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
        assert status == 0
    lines = records(log)
    assert all({"time", "level", "logger"} <= line.keys() for line in lines)
    assert next(line for line in lines if line["level"] != "warning")["message"].startswith(first)
    warning = f"other users have access to {data} (mode 0755); run chmod 700 {data}"
    assert [line["level"] for line in lines if line.get("message") == warning] == ["warning"]
    assert any(line["logger"] == "readership.access" for line in lines) == (arguments[0] == "serve")


def check_urls(log: Path, local: str, *, is_on_all_interfaces: bool) -> None:
    """Check that a service names addresses that answer, the last of them this local one."""
    (message,) = (text for line in records(log) if "listens at" in (text := line.get("message", "")))
    urls = re.findall(r"http://[^ ,]+", message)
    assert until(lambda: all(answers(f"{url}/healthz") for url in urls))
    assert (", on all interfaces, " in message) == is_on_all_interfaces
    assert urls[-1].startswith(local)


@pytest.mark.long
def test_requests_are_not_logged_at_the_level_of_warnings(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    new_key(data)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    argv = [COMMAND, "--data", data, "serve", "--port", port]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(argv, stderr=stderr, env={"READERSHIP_LOG_LEVEL": "warning"}) as process,
        killed_on_failure(process),
    ):
        until(lambda: answers(f"http://127.0.0.1:{port}/healthz"))
        process.terminate()
        assert process.wait(60) == 0
    old_lists = age_warning(shipped().values(), datetime.now(UTC))
    warnings = ["The dashboard has no user yet. Create the first owner within 30 minutes:"]
    if old_lists:
        warnings.append(f"{old_lists.text()}; run {COMMAND} --data {data} ranges refresh, and restart the service")
    logged = [line["message"] for line in records(log)]
    assert len(logged) == len(warnings)
    assert all(map(str.startswith, logged, warnings))


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


UNCAUGHT = """
import threading, warnings
from api import logs
logs.configure("warning")
warnings.warn("a warning")
thread = threading.Thread(target=lambda: 1 / 0, name="a-thread")
thread.start()
thread.join()
{}["missing"]
"""


def test_uncaught_errors_and_warnings_of_python_are_records() -> None:
    done = subprocess.run([sys.executable, "-c", UNCAUGHT], capture_output=True, text=True, check=False)
    warned, thread, main = map(json.loads, done.stderr.splitlines())
    assert (done.returncode, warned["level"]) == (1, "warning")
    assert "a warning" in warned["message"]
    assert thread["message"] == "uncaught error in thread a-thread: 'ZeroDivisionError'"
    assert main["message"] == "uncaught error in thread MainThread: 'KeyError'"
    assert "1 / 0" in thread["traceback"] or "ZeroDivisionError" in thread["traceback"]


class Minutes:
    """Calls that wait for the end of a minute."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        assert seconds == OUTAGE_EVERY_S
        self._waiting.append(call)

    def pass_one(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()


def test_outage_is_logged_at_its_start_and_each_minute_with_the_number(caplog: pytest.LogCaptureFixture) -> None:
    minutes = Minutes()
    outages = Outages(minutes.later)

    def refuse(count: int, outage: str = "the hot log does not answer") -> None:
        for number in range(count):
            outages.refuse(outage, "ServerError: refused", f"r{number}")

    def lines() -> list[str]:
        messages = caplog.messages.copy()
        caplog.clear()
        return messages

    start = "the hot log does not answer: ServerError: refused"
    refuse(1_501)
    assert lines() == [start]
    refuse(2, "the control database does not answer")
    assert lines() == ["the control database does not answer: ServerError: refused"]
    minutes.pass_one()
    assert lines() == [
        f"the hot log does not answer: requests refused in the last {OUTAGE_EVERY_S} seconds: 1,500",
        f"the control database does not answer: requests refused in the last {OUTAGE_EVERY_S} seconds: 1",
    ]
    refuse(7)
    minutes.pass_one()
    assert lines() == [f"the hot log does not answer: requests refused in the last {OUTAGE_EVERY_S} seconds: 7"]
    minutes.pass_one()  # the outage is over
    assert lines() == []
    refuse(1)
    assert lines() == [start]
