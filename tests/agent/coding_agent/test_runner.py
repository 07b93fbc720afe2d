"""One turn of a coding agent, with the real opencode where it is installed."""

import re
import socket
from pathlib import Path

import httpx
import pytest

from agent.errors import ProgramTimedOut, TurnFailed, TurnStopped
from agent.sandbox import bubblewrap
from tests.agent.job_folder import Job
from tests.agent.servers.model_server import KEY, Call, ModelServer, Silence, Text

WRITE = Call("write", {"filePath": "/work/greeting.txt", "content": "Hello.\n"})


@pytest.fixture
def agent(opencode: Path) -> dict[str, object]:
    """Return the request arguments for opencode."""
    return {"preset": "opencode", "model": "scripted", "model_key": KEY, "read_only": (opencode,)}


# --- opencode, driven by a scripted model server


@pytest.mark.long
@pytest.mark.installed
def test_follow_up_continues_the_session_of_the_first_turn(job: Job, agent: dict[str, object]) -> None:
    with ModelServer([WRITE, Text("I wrote a greeting."), Text("It still greets.")]) as server:
        first = job.run(prompt="Write a greeting.", upstream=server.url, **agent)
        assert first.summary == "I wrote a greeting."
        assert (job.tree / "greeting.txt").read_text() == "Hello.\n"
        assert sorted(path.name for path in job.tree.iterdir()) == ["README", "greeting.txt"]
        second = job.run(
            prompt="Does it?", upstream=server.url, session=first.session, history=["Write a greeting."], **agent
        )
        assert second == type(second)(first.session, "It still greets.")
        assert server.prompts[-1].count("Write a greeting.") == 1
        assert "Earlier requests" not in server.prompts[-1]
        assert "I wrote a greeting." in server.prompts[-1]
    assert KEY.encode() not in job.output


@pytest.mark.installed
def test_unreachable_model_server_ends_the_turn_before_its_time_limit(job: Job, agent: dict[str, object]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(TurnFailed, match=f"stopped: the model server at {url} cannot be reached: ."):
        job.run(upstream=url, limit_s=120, failing_s_max=0.5, **agent)


@pytest.mark.installed
def test_agent_is_ended_at_the_time_limit(job: Job, agent: dict[str, object]) -> None:
    with ModelServer([Silence()]) as server, pytest.raises(ProgramTimedOut, match="the agent did not end within 5 s"):
        job.run(upstream=server.url, limit_s=5, **agent)


# --- Any agent


@pytest.mark.long
def test_agent_without_sessions_receives_the_earlier_prompts(job: Job) -> None:
    job.run(command=["cat"], prompt="Now this.", session="of another agent", history=["First that.", "Then more."])
    assert job.output.decode() == (
        "Earlier requests, whose changes are in the work tree:\n\nRequest 1:\nFirst that.\n\nRequest 2:\n"
        "Then more.\n\nThe request now:\nNow this."
    )


@pytest.mark.long
def test_agent_with_an_empty_home_receives_the_earlier_prompts(job: Job, tmp_path: Path) -> None:
    """Empty the home, as after a move to another machine. A program of the preset's name records its input."""
    tools = _tool(tmp_path, "opencode", 'echo "$@" > arguments; cat > prompt')
    options = {"preset": "opencode", "model": "m", "session": "ses_1", "history": ["First that."]}
    for has_session in (False, True):
        with pytest.raises(TurnFailed, match="without a final record of success"):
            job.run(read_only=(tools,), **options)
        assert ("--session ses_1" in (job.tree / "arguments").read_text()) == has_session
        assert ("First that." in (job.tree / "prompt").read_text()) != has_session
        (job.home / "sessions").touch()


@pytest.mark.long
def test_silent_model_server_is_named_at_the_time_limit(job: Job) -> None:
    ask = "import os, urllib.request as r; r.urlopen(os.environ['MODEL_SERVER'] + '/responses', b'{}')"
    with (
        ModelServer([Silence()]) as server,
        pytest.raises(
            ProgramTimedOut, match=r"did not end within 5 s; the model server at .* has received a request and not"
        ),
    ):
        job.python(ask.replace("b'{}'", "b'{\"tools\": [1]}'"), upstream=server.url, model_key=KEY, limit_s=5)


@pytest.mark.long
def test_command_that_fails_or_cannot_be_started_is_quoted(job: Job, tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    for command, reason in (
        (["sh", "-c", "echo no such thing >&2; exit 3"], "sh ended with status 3: no such thing"),
        (["no-such-agent"], "no-such-agent is not installed: install it"),
        ([str(tmp_path / "program")], "cannot be started; is its folder readable by the agent"),
    ):
        with pytest.raises(TurnFailed, match=reason):
            job.run(command=command)


@pytest.mark.long
def test_command_reaches_the_model_server_and_without_a_sandbox_uses_the_real_folders(job: Job) -> None:
    with ModelServer([Text("Hello.")]) as server:
        output = job.shell("echo $MODEL_SERVER $MODEL_NAME", upstream=server.url, model="scripted")
        assert re.fullmatch(r"http://127\.0\.0\.1:8765/[0-9a-f]{32} scripted\n", output)
        options = {"sandboxed": False, "upstream": server.url, "model_key": KEY}
        output = job.shell("pwd; echo $HOME; env; touch created", **options)
    assert output.startswith(f"{job.tree}\n{job.home}\n")
    assert KEY not in output
    assert (job.tree / "created").exists()


@pytest.mark.long
def test_connections_that_are_open_at_the_end_leave_no_traceback_in_the_output(job: Job) -> None:
    """Leave idle connections, and a request without a response, open."""
    script = (
        "import os, socket; port, token = os.environ['MODEL_SERVER'].rpartition(':')[2].split('/')\n"
        "ends = [socket.create_connection(('127.0.0.1', int(port))) for _ in range(5)]\n"
        "ends[0].sendall(b'POST /' + token.encode() + b'/responses HTTP/1.1\\r\\n')\n"
        "ends[0].sendall(b'Content-Length: 14\\r\\n\\r\\n{\"tools\": [1]}')\n"
        "print('Done.', flush=True)\n"
        "os._exit(0)"
    )
    with ModelServer([Silence()]) as server:
        assert job.python(script, upstream=server.url, model_key=KEY) == "Done.\n"


@pytest.mark.long
def test_other_user_of_the_machine_cannot_use_the_model_key_without_a_sandbox(job: Job) -> None:
    """Let the agent publish the gateway's port, wait for the other user's requests, and send one itself."""
    script = (
        "import os, pathlib, time, urllib.request as r\n"
        "server = os.environ['MODEL_SERVER']\n"
        "port = server.rpartition(':')[2].partition('/')[0]\n"
        "pathlib.Path('new').write_text(port); os.rename('new', 'port')\n"
        "while not os.path.exists('done'): time.sleep(0.01)\n"
        "print(r.urlopen(server + '/chat/completions', b'{}').status)\n"
    )
    statuses: list[int] = []

    def attack() -> bool:
        if not statuses and (job.tree / "port").exists():
            url = f"http://127.0.0.1:{(job.tree / 'port').read_text()}"
            for path, key in (("", ""), ("", "Bearer the-gateway-knows-it"), ("/" + "0" * 32, ""), ("/", "Bearer é")):
                headers = {"Authorization": key.encode(), "x-api-key": key.encode()}
                statuses.append(httpx.post(f"{url}{path}/chat/completions", json={}, headers=headers).status_code)
            (job.tree / "done").touch()
        return False

    with ModelServer([Text("Hello.")]) as server:
        options = {"sandboxed": False, "upstream": server.url, "model_key": KEY, "is_stopped": attack}
        assert job.python(script, **options) == "200\n"
    assert (statuses, len(server.requests)) == ([403] * 4, 1)


def test_agent_without_a_final_record_has_failed(job: Job, tmp_path: Path) -> None:
    """Run a program of the agent's name that exits with 0 and prints no final record."""
    tools = _tool(tmp_path, "opencode", "echo chatter; exit 0")
    with pytest.raises(TurnFailed, match="opencode ended without a final record of success: chatter"):
        job.run(preset="opencode", model="m", upstream="http://127.0.0.1:9", read_only=(tools,))


def test_stop_ends_the_turn(job: Job) -> None:
    with pytest.raises(TurnStopped):
        job.run(command=["sh", "-c", "touch begun; sleep 1000"], is_stopped=(job.tree / "begun").exists)


# --- What the machine lacks


def test_bubblewrap_without_permission_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    reason = bubblewrap.unavailable_reason(f"{tmp_path}:{bubblewrap.PATH}")
    assert reason == (
        "bubblewrap (0.8 or later) cannot create a sandbox on this machine: "
        "bwrap: No permissions to create a new namespace"
    )


def _tool(folder: Path, name: str, script: str) -> Path:
    """Create a folder with a program of this name."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)
    return tools
