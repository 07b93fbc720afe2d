"""First program of the sandbox: it runs the agent, and connects it to the gateway."""

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent.sandbox import init

PROGRAM = str(Path(init.__file__))
ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(b"question")
    connection.shutdown(socket.SHUT_WR)
    sys.stdout.write(connection.makefile().read())
"""


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "prompt"
    path.write_text("Fix the page")
    return path


def run(prompt: Path, port: int, gateway: Path, *command: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", "-S", PROGRAM, str(prompt), str(port), str(gateway), "--", *command]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_agent_reads_the_prompt_and_its_status_is_returned_as_by_a_shell(prompt: Path, tmp_path: Path) -> None:
    missing = "no-such-agent cannot be started: No such file or directory\n"
    for command, ended in (
        (["sh", "-c", "cat; exit 7"], (7, "Fix the page", "")),
        (["sh", "-c", "kill -KILL $$"], (128 + 9, "", "")),
        (["no-such-agent"], (127, "", missing)),
    ):
        done = run(prompt, 0, tmp_path / "none", *command)
        assert (done.returncode, done.stdout, done.stderr) == ended


def answer_once(listener: socket.socket, received: list[bytes]) -> None:
    connection, _ = listener.accept()
    with connection:
        received.append(connection.makefile("rb").read())
        connection.sendall(b"answer")


def test_connection_of_the_agent_reaches_the_gateway_in_both_directions(prompt: Path, tmp_path: Path) -> None:
    received: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "gateway"))
        listener.listen()
        gateway = threading.Thread(target=answer_once, args=(listener, received))
        gateway.start()
        port = init.free_port()
        done = run(prompt, port, tmp_path / "gateway", sys.executable, "-c", ASK, str(port))
        gateway.join()
    assert (done.returncode, done.stdout, done.stderr, received) == (0, "answer", "", [b"question"])


def test_free_port_can_be_bound() -> None:
    with socket.create_server(("127.0.0.1", init.free_port())) as server:
        assert server.getsockname()[1] > 1023
