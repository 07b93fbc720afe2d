"""Command lines that run a program in the sandbox.

A program in the sandbox sees its work tree, its home and the system's programs, and nothing else of the machine.
Bubblewrap creates new namespaces (user, mount, network, process, IPC, host name, cgroup) without capabilities and
without a network device except loopback. prlimit limits each process; `agent.sandbox.watchdog` limits the memory and
disk space of all processes together.

A service that runs as root needs two steps, because the kernel does not limit the number of root's processes, and
because an ordinary user cannot reach a work tree below /root. The outer bubblewrap runs as root and binds the needed
folders into an empty root folder. Then setpriv switches to the ordinary user AGENT_UID, which runs the inner
bubblewrap.
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
from agent.sandbox import seccomp

TREE = Path("/work")
HOME = Path("/home/agent")
RUN = Path("/run/agent")
"""Paths of work tree, home and scratch folder in the sandbox."""
FILTER = "seccomp.bpf"

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
AGENT_UID = 60900
"""User id of the agent's programs outside of the sandbox if the service runs as root. No Linux distribution assigns the
id: https://systemd.io/UIDS-GIDS"""
UID_INSIDE = "1000"
TRIAL_S = 10
"""Time limit of the trial program of `unavailable_reason`, in seconds."""
END_S = 10
"""Time limit of `wait_for_end`, in seconds."""
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
    """Limits of one turn.

    `memory_bytes` is enforced at once for each process, and within a second for all processes together.
    """

    processes: int = 1024
    memory_bytes: int = 8 * GIB
    file_bytes: int = 2 * GIB
    disk_bytes: int = 10 * GIB
    tmp_bytes: int = GIB
    open_files: int = 8192
    model_requests: int = 2_000
    """Two agents that work without a pause, with a request every four seconds, send 1,800 in the default hour."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Paths, environment and limits of a sandbox.

    `run` is the scratch folder, which is read-only in the sandbox. `hidden` folders are covered if a visible folder
    contains them.
    """

    tree: Path
    home: Path
    run: Path
    env: Mapping[str, str]
    cpu_s: int
    limits: Limits = field(default_factory=Limits)
    read_only: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()


def command(sandbox: Sandbox, argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` in the sandbox, with the work tree as its current folder.

    Write the filter of system calls to the scratch folder, from which the command line reads it.

    Raises:
        TurnFailed: a folder of `read_only` would make a hidden folder visible.
    """
    (sandbox.run / FILTER).write_bytes(seccomp.program())
    for path in sandbox.read_only:
        _require_safe_to_show(path, sandbox)
    limited = [*_prlimit(sandbox), "nice", "-n", "10", *argv]
    if os.geteuid() != 0:
        return [*_inner_bwrap(sandbox, sandbox.tree, sandbox.home, sandbox.run), *limited]
    job = Path("/job")
    return [*_outer_bwrap(sandbox, job), *_inner_bwrap(sandbox, job / "tree", job / "home", job / "run"), *limited]


def grant_write(*folders: Path) -> None:
    """Let the agent write in these folders: if the service runs as root, change their owner to AGENT_UID.

    No process of the agent may run meanwhile.

    Raises:
        TurnFailed: an owner cannot be changed, for example because a path is too long.
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
            raise TurnFailed(f"the agent cannot be made the owner of the work tree: {problem.strerror}") from problem


def is_write_granted(folder: Path) -> bool:
    """Return whether the agent can write in the folder already."""
    return folder.stat().st_uid == (AGENT_UID if os.geteuid() == 0 else os.geteuid())


def unavailable_reason(path: str = PATH) -> str | None:
    """Run a trial program in a sandbox. Return why this machine cannot create a sandbox, or None if it can."""
    for program, package in PROGRAMS.items():
        if shutil.which(program, path=path) is None:
            return f"{program} is not installed (Debian, Ubuntu: apt-get install {package})"
    with tempfile.TemporaryDirectory(prefix="readership-") as folder:
        tree, home, run = (Path(folder) / name for name in ("tree", "home", "run"))
        for place in (tree, home, run):
            place.mkdir()
        grant_write(Path(folder))
        sandbox = Sandbox(tree, home, run, env={}, cpu_s=TRIAL_S)
        try:
            trial = subprocess.run(  # noqa: S603  # no shell, and no argument comes from outside
                command(sandbox, ["true"]), env={"PATH": path}, capture_output=True, timeout=TRIAL_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"bubblewrap did not start a program within {TRIAL_S} s"
    if trial.returncode == 0:
        return None
    message = trial.stderr.decode(errors="replace").strip() or f"it ended with status {trial.returncode}"
    return f"bubblewrap (0.8 or later) cannot create a sandbox on this machine: {message}"


def wait_for_end(run: Path) -> None:
    """Wait until no process of the sandbox is left. The unique name of the scratch folder `run` identifies them.

    Bubblewrap returns the agent's status before it kills the other processes of the sandbox. For some milliseconds such
    a process could still write into the work tree while it is committed.

    Raises:
        TurnFailed: a process could not be killed, for example because its disk does not respond.
    """
    deadline = time.monotonic() + END_S
    while any(_is_in_sandbox(process, run.name) for process in Path("/proc").glob("[0-9]*")):
        if time.monotonic() > deadline:
            raise TurnFailed("a process of the agent cannot be killed: check for a disk that does not respond")
        time.sleep(END_S / 1000)


def _is_in_sandbox(process: Path, name: str) -> bool:
    """Return whether the scratch folder `name` is mounted for the process. A process that is ending has no mounts."""
    try:
        return f"/{name} {RUN} " in (process / "mountinfo").read_text()
    except OSError:
        return False


def python() -> tuple[Path, Path | None]:
    """Return the running Python interpreter, and the folder outside of /usr that must be visible for it, if any."""
    executable = Path(sys.executable).resolve()
    prefix = Path(sys.base_prefix).resolve()
    return executable, None if prefix.is_relative_to("/usr") else prefix


def _require_safe_to_show(path: Path, sandbox: Sandbox) -> None:
    real = path.resolve()
    contains_job = any(place.resolve().is_relative_to(real) for place in (sandbox.tree, sandbox.home))
    is_hidden = any(real.is_relative_to(place.resolve()) for place in sandbox.hidden)
    if not path.is_absolute() or real in NEVER_VISIBLE or contains_job or is_hidden:
        raise TurnFailed(f"{path} cannot be made visible to the agent: set the folder of the program itself")


def _prlimit(sandbox: Sandbox) -> list[str]:
    """Return the command prefix that limits each process.

    The memory limit is RLIMIT_DATA, not RLIMIT_AS: node and bun reserve more address space than they use.
    """
    limits = sandbox.limits
    return [
        *("prlimit", f"--nproc={limits.processes}", f"--data={limits.memory_bytes}", f"--fsize={limits.file_bytes}"),
        *(
            f"--cpu={sandbox.cpu_s}",
            f"--nofile={limits.open_files}",
            "--core=0",
            "--memlock=65536",
            "--msgqueue=0",
            "--",
        ),
    ]


def _inner_bwrap(sandbox: Sandbox, tree: Path, home: Path, run: Path) -> list[str]:
    """Return the bubblewrap command of the sandbox itself.

    Every writable place is limited: /tmp and /dev/shm by their size, the work tree and the home by the watchdog.
    """
    size = str(sandbox.limits.tmp_bytes)
    covered = [
        path for path in map(Path.resolve, sandbox.hidden) if any(map(path.is_relative_to, _visible(sandbox.read_only)))
    ]
    return [
        *("sh", "-c", 'exec "$@" 3< "$0"', f"{run}/{FILTER}", "bwrap", "--seccomp", "3"),
        *("--unshare-all", "--unshare-user", "--disable-userns", "--uid", UID_INSIDE, "--gid", UID_INSIDE),
        *("--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "agent", "--clearenv"),
        *("--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/tmp"),  # noqa: S108  # private to the sandbox
        *("--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108  # the same
        *_system(sandbox),
        *(word for path in covered for word in ("--tmpfs", str(path), "--remount-ro", str(path))),
        *("--bind", str(tree), str(TREE), "--bind", str(home), str(HOME), "--ro-bind", str(run), str(RUN)),
        *("--ro-bind-try", f"{run}/passwd", "/etc/passwd", "--ro-bind-try", f"{run}/hosts", "/etc/hosts"),
        *("--remount-ro", "/", "--chdir", str(TREE)),
        *(word for name, value in sandbox.env.items() for word in ("--setenv", name, value)),
        "--",
    ]


def _outer_bwrap(sandbox: Sandbox, job: Path) -> list[str]:
    """Return the command that root runs: bind the folders of `_inner_bwrap` below `job`, then become AGENT_UID."""
    places = {"tree": sandbox.tree, "home": sandbox.home, "run": sandbox.run}
    return [
        *("bwrap", "--unshare-pid", "--die-with-parent", "--dev-bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev"),
        *_traversable([job, Path("/tmp")]),  # noqa: S108  # bubblewrap starts in /tmp
        *_system(sandbox),
        *(word for name, path in places.items() for word in ("--bind", str(path), str(job / name))),
        *("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP", "--"),
        *("setpriv", f"--reuid={AGENT_UID}", f"--regid={AGENT_UID}", "--clear-groups", "--inh-caps=-all"),
        *("--bounding-set=-all", "--no-new-privs", "--pdeathsig", "KILL", "--"),
    ]


def is_visible(path: Path, read_only: Sequence[Path]) -> bool:
    """Return whether a file of this machine is visible in the sandbox, after its symbolic links are resolved."""
    shown = (*_visible(read_only), *SYSTEM, *(Path("/etc", name) for name in ETC))
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(each)) for each in shown)


def _visible(read_only: Sequence[Path]) -> list[Path]:
    """Return the folders that are visible under their own path: /usr, the Python interpreter's, and `read_only`."""
    interpreter = python()[1]
    return [Path("/usr"), *([interpreter] if interpreter else []), *read_only]


def _system(sandbox: Sandbox) -> list[str]:
    visible = _visible(sandbox.read_only)
    return [
        *_traversable([Path("/etc/ssl"), Path("/etc/pki/tls"), *(path.parent for path in visible)]),
        *(word for path in visible for word in ("--ro-bind", str(path), str(path))),
        *(word for path in SYSTEM for word in _linked(path)),
        *(word for name in ETC for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")),
    ]


def _linked(path: Path) -> tuple[str, ...]:
    """Return the options for a system folder: /bin is a link into /usr on most machines, and a folder on others."""
    if path.is_symlink():
        return ("--symlink", str(path.readlink()), str(path))
    return ("--ro-bind", str(path), str(path)) if path.is_dir() else ()


def _traversable(folders: Sequence[Path]) -> Iterator[str]:
    """Return the options that create the folders with mode 0755: bubblewrap itself creates them for root only."""
    seen: set[Path] = set()
    for folder in folders:
        for path in reversed([folder, *folder.parents][:-1]):
            if path not in seen:
                seen.add(path)
                yield from ("--perms", "0755", "--dir", str(path))
