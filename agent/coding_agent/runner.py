"""One turn of a coding agent: from a prompt and a work tree to what it says it did, or to the reason why it did not.

The agent is believed only if it ended in time, with status 0, and its final record says so. What changed in the tree is
git's to say.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from agent import process
from agent.coding_agent.output import SUMMARY_CHARACTERS, Output
from agent.coding_agent.presets import Ask, Preset, Start, preset
from agent.errors import ProgramTimedOut, TurnFailed, TurnStopped
from agent.sandbox import bubblewrap, init, scratch
from agent.sandbox.bubblewrap import Box, Limits
from agent.sandbox.gateway import PATIENCE_S, Gateway
from agent.sandbox.watchdog import Watchdog

PORT_INSIDE = 8765
CORES_COUNTED = 4
"""The limit on CPU seconds binds a process; one with that many busy threads may still use all of its time."""
SOCKET = "gateway.sock"


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One turn. `session` and `history` are of the job's earlier turns: what the last one returned, and their prompts;
    `discarded` are prompts that the session may know, and of which nothing is in the work tree.

    `read_only` are folders that the agent's programs need; `hidden` are folders that it must never see. Without
    `upstream` it is the preset's own. `patience_s`: for how long the model server may fail before the turn is given up.
    """

    preset: str
    prompt: str
    tree: Path
    home: Path
    limit_s: float
    is_stopped: Callable[[], bool]
    on_output: Callable[[bytes], None] = lambda piece: None
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
    patience_s: float = PATIENCE_S


@dataclass(frozen=True, slots=True)
class RunResult:
    """`session`: what a follow-up gives back, should the agent keep sessions. `summary`: the agent's last words."""

    session: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class _Places:
    """The folders of a turn as the agent sees them, and where it finds the model server; `given` is `run` outside."""

    tree: Path
    home: Path
    run: Path
    port: int
    given: Path


def run(request: RunRequest) -> RunResult:
    """Run the agent to the end of its turn. Nothing of it is left running when this returns or raises.

    Raises:
        TurnStopped: `is_stopped` said so.
        ProgramTimedOut: it did not end within its time.
        TurnFailed: anything else. Each message is for whoever reads the job's log.
    """
    agent = preset(request.preset, request.command)
    if request.sandboxed and (reason := bubblewrap.missing()):
        raise TurnFailed(f"the agent cannot be run safely: {reason}")
    _check_installed(request, agent)
    output = Output(agent.read)
    with ExitStack() as stack:
        places = _places(request, stack.enter_context(scratch.folder()))
        start = agent.start(_ask(request, agent, places))
        upstream = request.upstream or agent.upstream
        gateway = None
        if upstream is not None:
            socket = places.given / SOCKET
            gateway = stack.enter_context(
                Gateway(socket, upstream, request.model_key, agent.key_header, request.patience_s)
            )
        _give(request, _prompt(request, agent), start, places)
        watchdog = stack.enter_context(Watchdog((request.tree, request.home), request.limits))
        status = _run(request, start, places, output, watchdog, gateway)
        return _believe(request, agent, status, output, gateway)


def _check_installed(request: RunRequest, agent: Preset) -> None:
    if "/" not in agent.program and shutil.which(agent.program, path=_search_path(request)) is None:
        raise TurnFailed(
            f"{agent.program} is not installed: install it for all users,"
            " or name its folder as one that the agent may read"
        )


def _search_path(request: RunRequest) -> str:
    """The system's programs, and those of the folders the operator named, as npm and virtual environments lay them."""
    inner = ("", "bin", ".bin", "node_modules/.bin")
    return ":".join([*(str(folder / name) for folder in request.read_only for name in inner), bubblewrap.PATH])


def _places(request: RunRequest, folder: Path) -> _Places:
    if request.sandboxed:
        return _Places(bubblewrap.TREE, bubblewrap.HOME, bubblewrap.RUN, PORT_INSIDE, folder)
    return _Places(request.tree, request.home, folder, init.free_port(), folder)


def _ask(request: RunRequest, agent: Preset, places: _Places) -> Ask:
    return Ask(
        model=request.model,
        base_url=f"http://127.0.0.1:{places.port}",
        prompt=_prompt(request, agent),
        session=_session(request, agent),
        home=str(places.home),
        run=str(places.run),
    )


def _session(request: RunRequest, agent: Preset) -> str | None:
    """A session is kept in the home; without that (cleaned up by the agent) the prompts are replayed instead."""
    return request.session if agent.has_sessions and any(request.home.iterdir()) else None


def _prompt(request: RunRequest, agent: Preset) -> str:
    earlier, told = request.history, "Earlier requests; what they led to is in the work tree:"
    if _session(request, agent) is not None:
        earlier, told = request.discarded, "Nothing that was done for these requests is in the work tree any more:"
    if not earlier:
        return request.prompt
    requests = "\n\n".join(f"Request {number}:\n{prompt}" for number, prompt in enumerate(earlier, 1))
    return f"{told}\n\n{requests}\n\nThe request now:\n{request.prompt}"


def _give(request: RunRequest, prompt: str, start: Start, places: _Places) -> None:
    """What the agent may read. After the gateway has begun, so that its socket is given along."""
    files = {
        "prompt": prompt,
        "passwd": f"agent:x:{bubblewrap.UID_INSIDE}:{bubblewrap.UID_INSIDE}::{bubblewrap.HOME}:/bin/sh\n",
        "hosts": "127.0.0.1 localhost agent\n::1 localhost\n",
        "inside.py": Path(init.__file__).read_text(),
        **start.files,
    }
    for name, content in files.items():
        (places.given / name).write_text(content)
    if request.sandboxed:
        bubblewrap.give(request.tree, places.given, *(() if bubblewrap.is_given(request.home) else (request.home,)))


def _command(
    request: RunRequest, start: Start, places: _Places, gateway: Gateway | None
) -> tuple[list[str], dict[str, str]]:
    """What to run, and its environment."""
    port = places.port if gateway else 0
    run = places.run
    argv = [
        *(str(bubblewrap.python()[0]), "-I", "-S", f"{run}/inside.py", f"{run}/prompt", str(port), f"{run}/{SOCKET}"),
        *("--", *start.argv),
    ]
    env = {
        "PATH": _search_path(request),
        "HOME": str(places.home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "USER": "agent",
        **({"MODEL_SERVER": f"http://127.0.0.1:{port}", "MODEL_NAME": request.model} if gateway else {}),
        **start.env,
    }
    if not request.sandboxed:
        return argv, env
    box = Box(
        tree=request.tree,
        home=request.home,
        run=places.given,
        env=env,
        cpu_s=int(request.limit_s) * CORES_COUNTED + 1,
        limits=request.limits,
        read_only=request.read_only,
        hidden=request.hidden,
    )
    return bubblewrap.command(box, argv), {"PATH": bubblewrap.PATH}


def _run(
    request: RunRequest,
    start: Start,
    places: _Places,
    output: Output,
    watchdog: Watchdog,
    gateway: Gateway | None,
) -> int:
    """The agent's status, or the reason why it had to be ended."""

    def take(stream: process.Stream, piece: bytes) -> None:
        output.take(stream, piece)
        request.on_output(piece)

    def must_stop() -> bool:
        return request.is_stopped() or watchdog.reason is not None or (gateway is not None and gateway.given_up())

    argv, env = _command(request, start, places, gateway)
    try:
        return process.run(
            argv, cwd=request.tree, env=env, limit_s=request.limit_s, is_stopped=must_stop, on_output=take
        )
    except TurnStopped as stop:
        if watchdog.reason is not None:
            raise TurnFailed(f"the agent was stopped: {watchdog.reason}") from stop
        if gateway is not None and gateway.given_up():
            raise TurnFailed(f"the agent was stopped: {gateway.complaint()}") from stop
        raise
    except ProgramTimedOut as late:
        raise ProgramTimedOut(_joined(f"the agent did not end within {request.limit_s:g} s", gateway)) from late
    except OSError as problem:
        raise TurnFailed(f"the agent cannot be started: {problem}") from problem
    finally:
        bubblewrap.wait_for_end(places.given)


def _believe(request: RunRequest, agent: Preset, status: int, output: Output, gateway: Gateway | None) -> RunResult:
    """What the agent says of its turn, if all of it says the same."""
    record = output.record
    if status == init.CANNOT_START:
        raise TurnFailed(
            f"{agent.program} cannot be started; is its folder one that the agent may read? {output.last_words()}"
        )
    if record.error is not None:
        raise TurnFailed(_joined(f"{agent.program} failed: {record.error}", gateway))
    if status != 0:
        raise TurnFailed(_joined(f"{agent.program} ended with status {status}: {output.last_words()}", gateway))
    if agent.read is not None and not record.is_done:
        raise TurnFailed(
            _joined(f"{agent.program} ended without saying that it is done: {output.last_words()}", gateway)
        )
    return RunResult(record.session if agent.has_sessions else None, record.summary[:SUMMARY_CHARACTERS])


def _joined(reason: str, gateway: Gateway | None) -> str:
    complaint = gateway.complaint() if gateway else None
    return reason if complaint is None else f"{reason}; {complaint}"
