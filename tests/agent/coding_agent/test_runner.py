"""A turn of a coding agent: what it says it did, or a reason that a person can act on. opencode is a real one."""

import socket
from pathlib import Path

import pytest

from agent.errors import ProgramTimedOut, TurnFailed, TurnStopped
from agent.sandbox import bubblewrap
from tests.agent.job_folder import Job
from tests.agent.model_server import KEY, Call, ModelServer, Silence, Text

WRITE = Call("write", {"filePath": "/work/greeting.txt", "content": "Hello.\n"})


@pytest.fixture
def agent(opencode: Path) -> dict[str, object]:
    """What a request says of opencode."""
    return {"preset": "opencode", "model": "scripted", "model_key": KEY, "read_only": (opencode,)}


# --- opencode, driven by a scripted model server


def test_it_changes_the_tree_and_a_follow_up_goes_on_in_its_session(job: Job, agent: dict[str, object]) -> None:
    with ModelServer([WRITE, Text("I wrote a greeting."), Text("It still greets.")]) as server:
        first = job.run(prompt="Write a greeting.", upstream=server.url, **agent)
        assert first.summary == "I wrote a greeting."
        assert (job.tree / "greeting.txt").read_text() == "Hello.\n"
        assert sorted(path.name for path in job.tree.iterdir()) == ["README", "greeting.txt"]
        second = job.run(
            prompt="Does it?",
            upstream=server.url,
            session=first.session,
            history=["Write a greeting."],
            **agent,
        )
        assert second == type(second)(first.session, "It still greets.")
        assert server.prompts[-1].count("Write a greeting.") == 1
        assert "Earlier requests" not in server.prompts[-1]
        assert "I wrote a greeting." in server.prompts[-1]
    assert KEY.encode() not in job.output


def test_a_wrong_key_is_told(job: Job, agent: dict[str, object]) -> None:
    with (
        ModelServer([Text("Done.")], key="another") as server,
        pytest.raises(TurnFailed, match=r"refuses the model key \(401\): .*Incorrect API key provided"),
    ):
        job.run(upstream=server.url, **agent)


def test_a_dead_model_server_ends_the_turn_before_its_time(job: Job, agent: dict[str, object]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(TurnFailed, match=f"stopped: the model server at {url} cannot be reached: .*refused"):
        job.run(upstream=url, limit_s=120, patience_s=0.5, **agent)


def test_an_agent_that_never_ends_is_ended_at_its_time(job: Job, agent: dict[str, object]) -> None:
    with ModelServer([Silence()]) as server, pytest.raises(ProgramTimedOut, match="the agent did not end within 8 s"):
        job.run(upstream=server.url, limit_s=8, **agent)


# --- Any agent


def test_a_command_reads_the_prompt_and_its_last_line_is_the_summary(job: Job) -> None:
    result = job.run(command=["sh", "-c", "cat > prompt; pwd; echo 'All is well.'"], prompt="Grüße\n" * 50_000)
    assert (result.session, result.summary) == (None, "All is well.")
    assert (job.tree / "prompt").read_text() == "Grüße\n" * 50_000
    assert job.output == b"/work\nAll is well.\n"


def test_an_agent_without_sessions_is_told_the_earlier_prompts(job: Job) -> None:
    job.run(command=["cat"], prompt="Now this.", session="of another agent", history=["First that.", "Then more."])
    assert job.output.decode() == (
        "Earlier requests; what they led to is in the work tree:\n\nRequest 1:\nFirst that.\n\nRequest 2:\n"
        "Then more.\n\nThe request now:\nNow this."
    )


def test_without_the_home_of_its_session_an_agent_is_told_them_too(job: Job, tmp_path: Path) -> None:
    """The home is empty: another machine took over. A program of the preset's name shows what it is given."""
    tools = _tool(tmp_path, "opencode", 'echo "$@" > arguments; cat > prompt')
    given = {"preset": "opencode", "model": "m", "session": "ses_1", "history": ["First that."], "read_only": (tools,)}
    for is_kept in (False, True):
        with pytest.raises(TurnFailed, match="without saying that it is done"):
            job.run(**given)
        assert ("--session ses_1" in (job.tree / "arguments").read_text()) == is_kept
        assert ("First that." in (job.tree / "prompt").read_text()) != is_kept
        (job.home / "sessions").touch()


def test_a_silent_model_server_is_told_of_at_the_time_limit(job: Job) -> None:
    ask = "import os, urllib.request as r; open('begun', 'w'); r.urlopen(os.environ['MODEL_SERVER'] + '/x', b'{}')"
    with (
        ModelServer([Silence()]) as server,
        pytest.raises(
            ProgramTimedOut, match=r"did not end within 5 s; the model server at .* has taken a request and not"
        ),
    ):
        job.python(ask.replace("b'{}'", "b'{\"tools\": [1]}'"), upstream=server.url, model_key=KEY, limit_s=5)


def test_a_command_that_fails_is_quoted(job: Job) -> None:
    with pytest.raises(TurnFailed, match="sh ended with status 3: no such thing"):
        job.run(command=["sh", "-c", "echo no such thing >&2; exit 3"])


def test_a_command_may_ask_the_model_server_too(job: Job) -> None:
    with ModelServer([Text("Hello.")]) as server:
        said = job.shell("echo $MODEL_SERVER $MODEL_NAME", upstream=server.url, model="scripted")
    assert said == "http://127.0.0.1:8765 scripted\n"


def test_connections_that_are_open_when_the_agent_ends_leave_nothing_in_its_output(job: Job) -> None:
    """Idle connections, and a request that the model server does not answer."""
    script = (
        "import os, socket; port = int(os.environ['MODEL_SERVER'].rpartition(':')[2])\n"
        "ends = [socket.create_connection(('127.0.0.1', port)) for _ in range(5)]\n"
        "ends[0].sendall(b'POST /x HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 14\\r\\n\\r\\n{\"tools\": [1]}')\n"
        "print('Done.', flush=True)\n"
        "os._exit(0)"
    )
    with ModelServer([Silence()]) as server:
        assert job.python(script, upstream=server.url, model_key=KEY) == "Done.\n"


def test_an_agent_that_is_not_installed_is_named(job: Job) -> None:
    with pytest.raises(TurnFailed, match="no-such-agent is not installed: install it"):
        job.run(command=["no-such-agent"])


def test_an_agent_that_the_box_does_not_show_is_told(job: Job, tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    with pytest.raises(TurnFailed, match="cannot be started; is its folder one that the agent may read"):
        job.run(command=[str(tmp_path / "program")])


def test_an_unknown_agent_is_refused(job: Job) -> None:
    with pytest.raises(TurnFailed, match="no agent 'cursor': choose one of claude, codex, opencode, mini-swe-agent"):
        job.run(preset="cursor")


def test_an_agent_that_says_nothing_has_not_succeeded(job: Job, tmp_path: Path) -> None:
    """A program of that name that ends with status 0 and leaves no final record."""
    tools = _tool(tmp_path, "opencode", "echo chatter; exit 0")
    with pytest.raises(TurnFailed, match="opencode ended without saying that it is done: chatter"):
        job.run(preset="opencode", model="m", upstream="http://127.0.0.1:9", read_only=(tools,))


def test_a_turn_told_to_stop_stops(job: Job) -> None:
    with pytest.raises(TurnStopped):
        job.run(command=["sh", "-c", "touch begun; sleep 1000"], is_stopped=(job.tree / "begun").exists)


def test_without_a_box_the_agent_works_on_the_folders_themselves(job: Job) -> None:
    with ModelServer([Text("Hello.")]) as server:
        given = {"sandboxed": False, "upstream": server.url, "model_key": KEY}
        said = job.shell("pwd; echo $HOME; env; touch made", **given)
    assert said.startswith(f"{job.tree}\n{job.home}\n")
    assert KEY not in said
    assert (job.tree / "made").exists()


# --- What the machine lacks


def test_a_missing_bubblewrap_is_named(tmp_path: Path) -> None:
    assert bubblewrap.missing(str(tmp_path)) == "bwrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)"


def test_a_bubblewrap_that_is_not_allowed_to_work_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    reason = bubblewrap.missing(f"{tmp_path}:{bubblewrap.PATH}")
    assert reason == "bubblewrap (0.8 or later) cannot make a box here: bwrap: No permissions to create a new namespace"


def _tool(folder: Path, name: str, script: str) -> Path:
    """A folder with a program of that name."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)
    return tools
