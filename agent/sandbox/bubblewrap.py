"""A command in a box: it sees its work tree, its home and the system's programs, and nothing else of the machine.

Bubblewrap gives it namespaces of its own (user, mount, network, process, IPC, host name, cgroup), no capabilities and
no network device but its own loopback; prlimit bounds each process. What must hold for all of its processes together
(disk, memory) is in `agent.sandbox.watchdog`.

As root the box is made in two steps, because the limit on processes binds no root, and because an ordinary user cannot
reach a work tree below /root: the first bubblewrap, still root, puts what the second needs into an empty root folder;
then everything happens as the ordinary user AGENT_UID.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import TurnFailed

TREE = Path("/work")
HOME = Path("/home/agent")
RUN = Path("/run/agent")
"""Where the box has its work tree, its home and what was given to it, whatever their places outside."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
AGENT_UID = 60900
"""Who the box is outside when the service is root. No Linux distribution gives it away: https://systemd.io/UIDS-GIDS."""
UID_INSIDE = "1000"
TRIAL_S = 10
END_S = 10
PROGRAMS = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}

MIB = 1024 * 1024
GIB = 1024 * MIB

SYSTEM = tuple(Path(name) for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"))
ETC = (
    *("alternatives", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types"),
    *("nsswitch.conf", "pki/tls/certs", "protocols", "services", "ssl/certs", "ssl/openssl.cnf"),
)
NEVER_VISIBLE = tuple(Path(name) for name in ("/", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/var"))


@dataclass(frozen=True, slots=True)
class Limits:
    """What one turn may use. `memory_bytes` binds each process at once, and all of them together within a second."""

    processes: int = 1024
    memory_bytes: int = 8 * GIB
    file_bytes: int = 2 * GIB
    disk_bytes: int = 10 * GIB
    tmp_bytes: int = GIB
    open_files: int = 8192


@dataclass(frozen=True, slots=True)
class Box:
    """`run` is a folder of ours that it may read. `hidden` it must not see, should a folder that it sees hold it."""

    tree: Path
    home: Path
    run: Path
    env: Mapping[str, str]
    cpu_s: int
    limits: Limits = field(default_factory=Limits)
    read_only: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()


def command(box: Box, argv: Sequence[str]) -> list[str]:
    """What to run so that `argv` runs in the box; `argv` finds its own work tree as its folder.

    Raises:
        TurnFailed: a folder of `read_only` would show what must stay hidden.
    """
    for path in box.read_only:
        _refuse_if_telling(path, box)
    limited = [*_prlimit(box), "nice", "-n", "10", *argv]
    if os.geteuid() != 0:
        return [*_boxed(box, box.tree, box.home, box.run), *limited]
    job = Path("/job")
    return [*_as_agent(box, job), *_boxed(box, job / "tree", job / "home", job / "run"), *limited]


def give(*folders: Path) -> None:
    """Let the agent write in these folders. As root they become its own; no process of it may run meanwhile.

    Raises:
        TurnFailed: something in there cannot be given, as a path too long.
    """
    if os.geteuid() != 0:
        return
    pending = [str(folder) for folder in folders]
    while pending:
        path = pending.pop()
        try:
            os.chown(path, AGENT_UID, AGENT_UID, follow_symlinks=False)
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        os.chown(entry.path, AGENT_UID, AGENT_UID, follow_symlinks=False)
        except OSError as problem:
            raise TurnFailed(f"the work tree cannot be handed to the agent: {problem.strerror}") from problem


def is_given(folder: Path) -> bool:
    """Whether the agent may write there already, so that whatever is in there is its own too."""
    return folder.stat().st_uid == (AGENT_UID if os.geteuid() == 0 else os.geteuid())


def missing(path: str = PATH) -> str | None:
    """Why no box can be made on this machine, found by making one; None if it can."""
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=path) is None:
            return f"{program} is not installed (Debian, Ubuntu: apt-get install {package})"
    with tempfile.TemporaryDirectory(prefix="readership-") as folder:
        tree, home, run = (Path(folder) / name for name in ("tree", "home", "run"))
        for place in (tree, home, run):
            place.mkdir()
        give(Path(folder))
        box = Box(tree, home, run, env={}, cpu_s=TRIAL_S)
        try:
            trial = subprocess.run(  # noqa: S603  # no shell reads it, and none of it comes from outside
                command(box, ["true"]), env={"PATH": path}, capture_output=True, timeout=TRIAL_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"bubblewrap did not start a program within {TRIAL_S} s"
    if trial.returncode == 0:
        return None
    said = trial.stderr.decode(errors="replace").strip() or f"it ended with status {trial.returncode}"
    return f"bubblewrap (0.8 or later) cannot make a box here: {said}"


def wait_for_end(run: Path) -> None:
    """Wait until no process of the box is left; `run` is what makes it known, by a name that no other box has.

    Bubblewrap tells the agent's status before it ends, and the rest of the box is killed after: for some milliseconds
    a process in there could go on writing into a tree that is being committed.

    Raises:
        TurnFailed: a process could not be killed, as when its disk does not answer.
    """
    deadline = time.monotonic() + END_S
    while any(_is_in_box(process, run.name) for process in Path("/proc").glob("[0-9]*")):
        if time.monotonic() > deadline:
            raise TurnFailed("a process of the agent cannot be killed: look for a disk that does not answer")
        time.sleep(END_S / 1000)


def _is_in_box(process: Path, name: str) -> bool:
    """Whether `name` is mounted where it is. One that cannot write any more has no mounts left."""
    try:
        return f"/{name} {RUN} " in (process / "mountinfo").read_text()
    except OSError:
        return False


def python() -> tuple[Path, Path | None]:
    """The interpreter for the box, and the folder it needs to see beyond /usr: the one that runs this very program."""
    executable = Path(sys.executable).resolve()
    prefix = Path(sys.base_prefix).resolve()
    return executable, None if prefix.is_relative_to("/usr") else prefix


def _refuse_if_telling(path: Path, box: Box) -> None:
    real = path.resolve()
    holds_the_job = any(place.resolve().is_relative_to(real) for place in (box.tree, box.home))
    is_hidden = any(real.is_relative_to(place.resolve()) for place in box.hidden)
    if not path.is_absolute() or real in NEVER_VISIBLE or holds_the_job or is_hidden:
        raise TurnFailed(f"{path} cannot be shown to the agent: name the folder of the program itself")


def _prlimit(box: Box) -> list[str]:
    """RLIMIT_DATA rather than RLIMIT_AS: node and bun reserve far more address space than they use."""
    limits = box.limits
    return [
        *("prlimit", f"--nproc={limits.processes}", f"--data={limits.memory_bytes}", f"--fsize={limits.file_bytes}"),
        *(f"--cpu={box.cpu_s}", f"--nofile={limits.open_files}", "--core=0", "--memlock=65536", "--msgqueue=0", "--"),
    ]


def _boxed(box: Box, tree: Path, home: Path, run: Path) -> list[str]:
    """Every place it can write to is bounded: /tmp and /dev/shm by size, the tree and the home by the watchdog."""
    size = str(box.limits.tmp_bytes)
    covered = [path for path in map(Path.resolve, box.hidden) if any(map(path.is_relative_to, _shown(box)))]
    return [
        *("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--uid", UID_INSIDE, "--gid", UID_INSIDE),
        *("--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "agent", "--clearenv"),
        *("--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/tmp"),  # noqa: S108  # a place of its own
        *("--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108  # the same
        *_system(box),
        *(word for path in covered for word in ("--tmpfs", str(path), "--remount-ro", str(path))),
        *("--bind", str(tree), str(TREE), "--bind", str(home), str(HOME), "--ro-bind", str(run), str(RUN)),
        *("--ro-bind-try", f"{run}/passwd", "/etc/passwd", "--ro-bind-try", f"{run}/hosts", "/etc/hosts"),
        *("--remount-ro", "/", "--chdir", str(TREE)),
        *(word for name, value in box.env.items() for word in ("--setenv", name, value)),
        "--",
    ]


def _as_agent(box: Box, job: Path) -> list[str]:
    """As root, all of what `_boxed` asks for, where the ordinary user can reach it; then become that user."""
    places = {"tree": box.tree, "home": box.home, "run": box.run}
    return [
        *("bwrap", "--unshare-pid", "--die-with-parent", "--dev-bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev"),
        *_passable([job, Path("/tmp")]),  # noqa: S108  # bubblewrap begins from there
        *_system(box),
        *(word for name, path in places.items() for word in ("--bind", str(path), str(job / name))),
        *("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP", "--"),
        *("setpriv", f"--reuid={AGENT_UID}", f"--regid={AGENT_UID}", "--clear-groups", "--inh-caps=-all"),
        *("--bounding-set=-all", "--no-new-privs", "--pdeathsig", "KILL", "--"),
    ]


def _shown(box: Box) -> list[Path]:
    """The folders it sees as they are: the system's, what our own interpreter needs, and those the operator named."""
    beyond = python()[1]
    return [Path("/usr"), *([beyond] if beyond else []), *box.read_only]


def _system(box: Box) -> list[str]:
    shown = _shown(box)
    return [
        *_passable([Path("/etc/ssl"), Path("/etc/pki/tls"), *(path.parent for path in shown)]),
        *(word for path in shown for word in ("--ro-bind", str(path), str(path))),
        *(word for path in SYSTEM for word in _linked(path)),
        *(word for name in ETC for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")),
    ]


def _linked(path: Path) -> tuple[str, ...]:
    """/bin is a link into /usr on most machines, and a folder on others."""
    if path.is_symlink():
        return ("--symlink", str(path.readlink()), str(path))
    return ("--ro-bind", str(path), str(path)) if path.is_dir() else ()


def _passable(folders: Sequence[Path]) -> Iterator[str]:
    """Folders that everybody may pass: those that bubblewrap makes on its own way are closed to all but root."""
    seen: set[Path] = set()
    for folder in folders:
        for path in reversed([folder, *folder.parents][:-1]):
            if path not in seen:
                seen.add(path)
                yield from ("--perms", "0755", "--dir", str(path))
