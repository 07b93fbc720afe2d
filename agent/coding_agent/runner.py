"""One turn of a coding agent, from a prompt and a work tree to its result.

A turn succeeds if the agent ends within its time limit with exit status 0, and its final record reports success. The
changes of the work tree are determined by git, not by the agent's report.
"""

import logging
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from agent import process
from agent.coding_agent.output import SUMMARY_CHARACTERS, Output
from agent.coding_agent.presets import CommandLine, Preset, TurnInput, find_preset
from agent.errors import ProgramTimedOut, TurnFailed, TurnStopped
from agent.git.workspace import discard
from agent.sandbox import bubblewrap, init, scratch
from agent.sandbox.bubblewrap import Limits, Sandbox
from agent.sandbox.gateway import FAILING_S_MAX, Gateway, ModelCalls
from agent.sandbox.watchdog import Watchdog

PORT_INSIDE = 8765
"""Port of the model server in the sandbox."""
CORES_COUNTED = 4
"""Ratio of the CPU limit of a process to the time limit of its turn. A process with four busy threads can run until the
time limit."""
SOCKET = "gateway.sock"
LOG = logging.getLogger("readership.agent")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Input of one turn.

    `session` is the session that the job's previous turn returned, and `history` the prompts of its earlier turns.
    `discarded` are earlier prompts that the session may contain, but whose changes are not in the work tree.
    `read_only` are folders that the agent's programs need; `hidden` are folders that the agent must never see.
    `upstream` is the URL of the model server, or None for the preset's. The turn fails if all requests to the model
    server fail for `failing_s_max` seconds.
    """

    preset: str
    prompt: str
    tree: Path
    home: Path
    limit_s: float
    is_stopped: Callable[[], bool]
    on_output: Callable[[bytes], None] = lambda chunk: None
    command: Sequence[str] = ()
    model: str = ""
    history: Sequence[str] = ()
    discarded: Sequence[str] = ()
    session: str | None = None
    upstream: str | None = None
    model_key: str | None = field(default=None, repr=False)
    sandboxed: bool = True
    read_only: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    failing_s_max: float = FAILING_S_MAX


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a turn. `session` is for the next turn, if the agent has sessions; `summary` is its last message."""

    session: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class _Paths:
    """Folders, gateway port and token of a turn as the agent sees them. `scratch` is the path of `run` on the host."""

    tree: Path
    home: Path
    run: Path
    port: int
    scratch: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)


def run(request: RunRequest) -> RunResult:
    """Run the agent to the end of its turn. No process of the agent is left when `run` returns or raises.

    Raises:
        TurnStopped: `is_stopped` returned true.
        ProgramTimedOut: the agent did not end within its time limit.
        TurnFailed: the turn failed for another reason; see the message.
    """
    agent = find_preset(request.preset, request.command)
    if request.sandboxed and (reason := bubblewrap.unavailable_reason()):
        raise TurnFailed(f"the agent cannot run in a sandbox: {reason}")
    if not is_installed(agent.program, request.read_only):
        raise TurnFailed(
            f"{agent.program} is not installed: install it for all users, or make its folder readable by --readable"
        )
    output = Output(agent.parse)

    def on_refusal(reason: str) -> None:
        LOG.warning("%s: %s", request.tree.parent, reason)
        request.on_output(f"{reason}\n".encode())

    with ExitStack() as stack:
        paths = _paths(request, stack.enter_context(scratch.folder()))
        command_line = agent.command_line(_turn_input(request, agent, paths))
        upstream = request.upstream or agent.upstream
        gateway = None
        if upstream is not None:
            socket = paths.scratch / SOCKET
            calls = ModelCalls(agent.requests, request.limits.model_requests, on_refusal)
            keys = request.model_key, agent.key_header, paths.token
            gateway = stack.enter_context(Gateway(socket, upstream, *keys, calls, request.failing_s_max))
        _write_scratch(request, _prompt(request, agent), command_line, paths)
        watchdog = stack.enter_context(Watchdog((request.tree, request.home), request.limits))
        try:
            status = _run(request, command_line, paths, output, watchdog, gateway)
        except TurnFailed:
            for folder in watchdog.folders if watchdog.fills_disk else ():
                discard(folder)  # the next turn begins with a new home
            raise
        return _result(request, agent, status, output, gateway)


def is_installed(program: str, read_only: Sequence[Path]) -> bool:
    """Return whether the program of a coding agent is found on this machine. A path is not checked."""
    return "/" in program or shutil.which(program, path=_search_path(read_only)) is not None


def _search_path(read_only: Sequence[Path]) -> str:
    """Return the agent's PATH: program folders of `read_only`, as npm and venv lay them out, and then the system's."""
    inner = ("", "bin", ".bin", "node_modules/.bin")
    return ":".join([*(str(folder / name) for folder in read_only for name in inner), bubblewrap.PATH])


def _paths(request: RunRequest, folder: Path) -> _Paths:
    if request.sandboxed:
        return _Paths(bubblewrap.TREE, bubblewrap.HOME, bubblewrap.RUN, PORT_INSIDE, folder)
    return _Paths(request.tree, request.home, folder, init.free_port(), folder)


def _turn_input(request: RunRequest, agent: Preset, paths: _Paths) -> TurnInput:
    return TurnInput(
        model=request.model,
        base_url=f"http://127.0.0.1:{paths.port}",
        key=paths.token,
        prompt=_prompt(request, agent),
        session=_session(request, agent),
        home=str(paths.home),
        run=str(paths.run),
    )


def _session(request: RunRequest, agent: Preset) -> str | None:
    """Return the session to continue, or None to send the earlier prompts instead.

    Agents store their sessions in the home folder, which is empty after a job has moved to another machine.
    """
    return request.session if agent.has_sessions and any(request.home.iterdir()) else None


def _prompt(request: RunRequest, agent: Preset) -> str:
    earlier, heading = request.history, "Earlier requests, whose changes are in the work tree:"
    if _session(request, agent) is not None:
        earlier, heading = request.discarded, "Requests whose changes are no longer in the work tree:"
    if not earlier:
        return request.prompt
    requests = "\n\n".join(f"Request {number}:\n{prompt}" for number, prompt in enumerate(earlier, 1))
    return f"{heading}\n\n{requests}\n\nThe request now:\n{request.prompt}"


def _write_scratch(request: RunRequest, prompt: str, command_line: CommandLine, paths: _Paths) -> None:
    """Write the files of the scratch folder, and give the agent access to its folders.

    The gateway must run already, because its socket is in the scratch folder.
    """
    files = {
        "prompt": prompt,
        "passwd": f"agent:x:{bubblewrap.UID_INSIDE}:{bubblewrap.UID_INSIDE}::{bubblewrap.HOME}:/bin/sh\n",
        "hosts": "127.0.0.1 localhost agent\n::1 localhost\n",
        "init.py": Path(init.__file__).read_text(),
        **command_line.files,
    }
    for name, content in files.items():
        (paths.scratch / name).write_text(content)
    if request.sandboxed:
        home = () if bubblewrap.is_write_granted(request.home) else (request.home,)
        bubblewrap.grant_write(request.tree, paths.scratch, *home)


def _command(
    request: RunRequest, command_line: CommandLine, paths: _Paths, gateway: Gateway | None
) -> tuple[list[str], dict[str, str]]:
    """Return the command line with the sandbox, and the environment of the outermost program."""
    port = paths.port if gateway else 0
    run = paths.run
    argv = [
        *(str(bubblewrap.python()[0]), "-I", "-S", f"{run}/init.py", f"{run}/prompt", str(port), f"{run}/{SOCKET}"),
        *("--", *command_line.argv),
    ]
    env = {
        "PATH": _search_path(request.read_only),
        "HOME": str(paths.home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "USER": "agent",
        **({"MODEL_SERVER": f"http://127.0.0.1:{port}/{paths.token}", "MODEL_NAME": request.model} if gateway else {}),
        **command_line.env,
    }
    if not request.sandboxed:
        return argv, env
    sandbox = Sandbox(
        tree=request.tree,
        home=request.home,
        run=paths.scratch,
        env=env,
        cpu_s=int(request.limit_s) * CORES_COUNTED + 1,
        limits=request.limits,
        read_only=request.read_only,
        hidden=request.hidden,
    )
    return bubblewrap.command(sandbox, argv), {"PATH": bubblewrap.PATH}


def _run(
    request: RunRequest,
    command_line: CommandLine,
    paths: _Paths,
    output: Output,
    watchdog: Watchdog,
    gateway: Gateway | None,
) -> int:
    """Run the agent and return its exit status. Raises TurnStopped, ProgramTimedOut or TurnFailed."""

    def on_output(stream: process.Stream, chunk: bytes) -> None:
        output.add(stream, chunk)
        request.on_output(chunk)

    def must_stop() -> bool:
        return request.is_stopped() or watchdog.reason is not None or (gateway is not None and gateway.has_failed())

    argv, env = _command(request, command_line, paths, gateway)
    try:
        return process.run(
            argv, cwd=request.tree, env=env, limit_s=request.limit_s, is_stopped=must_stop, on_output=on_output
        )
    except TurnStopped as stop:
        if watchdog.reason is not None:
            raise TurnFailed(f"the agent was stopped: {watchdog.reason}") from stop
        if gateway is not None and gateway.has_failed():
            raise TurnFailed(f"the agent was stopped: {gateway.fault()}") from stop
        raise
    except ProgramTimedOut as timeout:
        raise ProgramTimedOut(_with_fault(f"the agent did not end within {request.limit_s:g} s", gateway)) from timeout
    except OSError as error:
        raise TurnFailed(f"the agent cannot be started: {error}") from error
    finally:
        bubblewrap.wait_for_end(paths.scratch)


def _result(request: RunRequest, agent: Preset, status: int, output: Output, gateway: Gateway | None) -> RunResult:
    """Return the result of a turn. Raises TurnFailed if the exit status or the final record reports a failure."""
    record = output.record
    if status == init.CANNOT_START:
        raise TurnFailed(
            f"{agent.program} cannot be started; is its folder readable by the agent (--readable)? "
            f"{output.last_lines()}"
        )
    if record.error is not None:
        raise TurnFailed(_with_fault(f"{agent.program} failed: {record.error}", gateway))
    if status != 0:
        raise TurnFailed(_with_fault(f"{agent.program} ended with status {status}: {output.last_lines()}", gateway))
    if agent.parse is not None and not record.is_done:
        raise TurnFailed(
            _with_fault(f"{agent.program} ended without a final record of success: {output.last_lines()}", gateway)
        )
    return RunResult(record.session if agent.has_sessions else None, record.summary[:SUMMARY_CHARACTERS])


def _with_fault(reason: str, gateway: Gateway | None) -> str:
    fault = gateway.fault() if gateway else None
    return reason if fault is None else f"{reason}; {fault}"
