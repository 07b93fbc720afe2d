"""An agent that does its worst from within its box, as the agent preset `command`. Each attempt fails."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from agent.errors import ProgramTimedOut, TurnFailed
from agent.sandbox import scratch
from agent.sandbox.bubblewrap import MIB, Limits
from tests.agent.job_folder import PYTHON, SECRET, Job, processes, sleeper
from tests.agent.model_server import KEY, ModelServer, Text
from tests.waiting import until

TOKEN = "ghp_the_git_token_of_the_project"


# --- Secrets


def test_it_finds_the_model_key_nowhere(job: Job) -> None:
    """Not in its environment or any it can see, not in a file it can read, not in what the gateway answers."""
    ask = """
import os, urllib.error, urllib.request
request = urllib.request.Request(os.environ["MODEL_SERVER"] + "/chat/completions", b"{}")
answer = urllib.request.urlopen(request)
print(answer.status, answer.headers, answer.read())
"""
    search = "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; grep -rs sk- /run /home /tmp /etc /work"
    with ModelServer([Text("Hello.")]) as server:
        written = job.python(ask, upstream=server.url, model_key=KEY)
        written += job.shell(search, upstream=server.url, model_key=KEY)
        assert server.requests[0][1]["authorization"] == f"Bearer {KEY}"
    assert "200" in written
    assert "MODEL_SERVER" in written
    assert KEY not in written


def test_it_reads_no_environment_but_its_own(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TOKEN", TOKEN)
    written = job.shell(f"env; cat /proc/*/environ /proc/{os.getpid()}/environ | tr '\\0' '\\n'")
    assert "HOME=/home/agent" in written
    assert TOKEN not in written


def test_it_sees_no_process_of_the_machine(job: Job) -> None:
    """The box's first process, the one that started the agent, the agent, and the listing itself."""
    seen = job.shell("for each in /proc/[0-9]*; do echo ${each#/proc/}; done").split()
    assert len(seen) <= 5
    assert str(os.getpid()) not in seen


def test_it_reads_neither_the_services_data_nor_another_job(job: Job) -> None:
    others = [job.data / "control.db", job.data / "jobs/2/tree/secret", job.git / "config", job.data, Path.home()]
    written = job.shell("; ".join(f"cat '{path}' || ls '{path}'" for path in others))
    pruned = f"-path /usr -prune -o -path '{sys.base_prefix}' -prune"
    written += job.shell(f"find / {pruned} -o -name control.db -print; cat /proc/1/root/etc/shadow /etc/shadow")
    assert SECRET not in written
    assert "control.db" not in written.replace(f"{job.data}/control.db", "")
    assert "root:x" not in written
    assert "root:*" not in written


def test_a_link_leads_nowhere(job: Job) -> None:
    written = job.shell(
        f"ln -s {job.data} up; ln -s {job.data}/control.db file; ln -s ../../.. out; cat file up/control.db; ls out/"
    )
    assert SECRET not in written
    assert written.count("No such file") == 2
    assert "control.db" not in written.replace(f"{job.data}/control.db", "").replace("up/control.db", "")


def test_a_link_of_an_earlier_turn_gives_nothing_away(job: Job) -> None:
    """What is handed to the agent before a turn is the link, not what it points to."""
    secret = job.data / "control.db"
    secret.chmod(0o600)
    job.shell(f"ln -s {secret} file; ln -s {job.data} ~/.config; ln -s {job.data} ~/.local")
    assert SECRET not in job.shell("cat file")
    assert secret.stat().st_uid == os.geteuid()
    assert sorted(path.name for path in job.data.iterdir()) == ["control.db", "jobs"]


def test_it_cannot_plant_anything_in_the_git_directory(job: Job) -> None:
    """That of the job is outside; one it makes itself is a folder of its tree, which the service never uses as one."""
    before = sorted(job.git.rglob("*"))
    written = job.shell(
        f"echo evil > {job.git}/hooks/pre-commit; git config core.fsmonitor evil; git config alias.commit '!evil';"
        " git rev-parse --git-dir; git config --system core.hooksPath /work"
    )
    assert sorted(job.git.rglob("*")) == before
    assert (job.git / "config").read_text() == SECRET
    assert not (job.tree / ".git").exists()
    assert "not a git repository" in written or "not in a git directory" in written


def test_a_folder_that_holds_the_job_cannot_be_shown(job: Job) -> None:
    for folder in (job.data, job.tree, Path("/"), Path("/etc"), Path("/root")):
        with pytest.raises(TurnFailed, match="cannot be shown to the agent"):
            job.shell("true", read_only=(folder,))


def test_what_is_to_be_hidden_is_hidden_in_a_shown_folder_too(job: Job, tmp_path: Path) -> None:
    (tmp_path / "tools/keys").mkdir(parents=True)
    (tmp_path / "tools/keys/key").write_text(SECRET)
    (tmp_path / "tools/program").write_text("there")
    shown = {"read_only": (tmp_path / "tools",), "hidden": (tmp_path / "tools/keys",)}
    written = job.shell(
        f"cat {tmp_path}/tools/program {tmp_path}/tools/keys/key; touch {tmp_path}/tools/keys/x", **shown
    )
    assert "there" in written
    assert SECRET not in written
    assert "Read-only" in written


# --- Network


REACH = """
import socket, sys
def attempt(name, family, kind, address):
    try:
        with socket.socket(family, kind) as end:
            end.settimeout(2)
            end.connect(address)
            end.send(b"hello")
            if kind == socket.SOCK_STREAM:
                end.recv(1)
        print("reached", name)
    except OSError as problem:
        print("not", name, problem)
"""


def test_it_reaches_no_network(job: Job) -> None:
    """Not the machine's loopback by TCP, UDP or an abstract Unix socket, nor anything beyond, nor a name server."""
    abstract = f"\0readership-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        tcp.setblocking(False)
        unix.bind(abstract)
        unix.listen()
        unix.setblocking(False)
        own = socket.gethostbyname(socket.gethostname())
        port = tcp.getsockname()[1]
        written = job.python(
            f"{REACH}\n"
            f"attempt('tcp', socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', {port}))\n"
            f"attempt('own address', socket.AF_INET, socket.SOCK_STREAM, ('{own}', {port}))\n"
            f"attempt('udp', socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', {udp.getsockname()[1]}))\n"
            f"attempt('abstract', socket.AF_UNIX, socket.SOCK_STREAM, {abstract!r})\n"
            "attempt('tcp beyond', socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.1', 80))\n"
            "attempt('udp beyond', socket.AF_INET, socket.SOCK_DGRAM, ('192.0.2.1', 53))\n"
            "try:\n    print('reached', socket.getaddrinfo('example.org', 80))\n"
            "except OSError:\n    print('not name')\n"
        )
        for end in (tcp, unix):
            with pytest.raises(BlockingIOError):
                end.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(1)
    assert written.count("not ") == 7 or "reached udp" in written
    assert "reached tcp" not in written
    assert "reached own" not in written
    assert "reached abstract" not in written
    assert "beyond" not in "".join(line for line in written.splitlines() if line.startswith("reached"))


# --- Privileges


def test_it_has_no_privilege_and_gets_none(job: Job) -> None:
    written = job.shell("id -u; grep -E '^(Cap|NoNewPrivs)' /proc/self/status; unshare -U true; mount -t tmpfs x /work")
    lines = written.splitlines()
    assert lines[0] == "1000"
    capabilities = [line.split()[1] for line in lines if line.startswith("Cap")]
    assert capabilities == ["0" * 16] * 5
    assert "NoNewPrivs:\t1" in lines
    assert "unshare failed" in written
    assert "mount:" in written


def test_nothing_but_its_own_places_can_be_written(job: Job) -> None:
    script = (
        "for each in / /usr /etc /bin /dev /run /run/agent /proc/sys/kernel; do touch $each/x && echo wrote $each; done"
    )
    written = job.shell(
        f"{script}; for each in /work /home/agent /tmp /dev/shm; do touch $each/x && echo may $each; done"
    )
    assert "wrote" not in written
    assert written.count("may ") == 4


def test_outside_it_is_no_root(job: Job, tmp_path: Path) -> None:
    marker = sleeper()
    seen: list[int] = []

    def look() -> bool:
        seen.extend(Path(f"/proc/{pid}").stat().st_uid for pid in processes("sleep", marker))
        return bool(seen)

    with pytest.raises(TurnFailed):
        job.run(command=["sleep", marker], is_stopped=look)
    assert 0 not in seen


# --- Exhaustion


FORKS = """
import os, time
count = 0
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
    except OSError as problem:
        print("stopped at", count, problem)
        break
    count += 1
    if count > 2000:
        print("never stopped")
        break
"""


def test_a_fork_bomb_stops_at_the_limit_and_leaves_nothing(job: Job) -> None:
    written = job.python(FORKS, limits=Limits(processes=60))
    assert "stopped at 5" in written
    assert not processes(PYTHON, "-c", FORKS)


def test_one_process_cannot_take_more_memory_than_the_limit(job: Job) -> None:
    script = "try:\n    bytearray(600 * 1024 * 1024)\n    print('took it')\nexcept MemoryError:\n    print('refused')"
    assert job.python(script, limits=Limits(memory_bytes=300 * MIB)) == "refused\n"


@pytest.mark.parametrize("kind", ["bytearray(80 * MIB)", "mmap.mmap(-1, 80 * MIB)"])
def test_nor_can_many_processes_together(job: Job, kind: str) -> None:
    """Memory of their own, and memory that they could share."""
    script = f"""
import mmap, os, time
MIB = 1024 * 1024
for _ in range(8):
    if os.fork() == 0:
        taken = {kind}
        for page in range(0, len(taken), 4096):
            taken[page] = 1
        time.sleep(1000)
time.sleep(1000)
"""
    with pytest.raises(TurnFailed, match=r"used more than 0\.29\d+ GiB of memory"):
        job.python(script, limits=Limits(memory_bytes=300 * MIB))


def test_it_cannot_fill_the_disk_with_many_files(job: Job) -> None:
    script = "i=0; while :; do i=$((i+1)); head -c 10000000 /dev/zero > ~/$i; sleep 0.01; done"
    with pytest.raises(TurnFailed, match=r"wrote more than 0\.048\d+ GiB to its work tree and home"):
        job.shell(script, limits=Limits(disk_bytes=50 * MIB))
    assert sum(path.stat().st_size for path in job.home.iterdir()) < 2_000 * MIB


def test_it_cannot_fill_the_disk_with_empty_files(job: Job) -> None:
    script = "import itertools\nfor n in itertools.count():\n    open(str(n), 'w').close()"
    with pytest.raises(TurnFailed, match="wrote more than"):
        job.python(script, limits=Limits(disk_bytes=20 * MIB))


def test_it_cannot_write_a_file_past_the_limit(job: Job) -> None:
    written = job.shell("head -c 3000000 /dev/zero > large; wc -c < large", limits=Limits(file_bytes=MIB))
    assert written.split()[-1] == str(MIB)


def test_its_own_tmp_has_a_size(job: Job) -> None:
    fill = "head -c 9000000 /dev/zero > /tmp/large; wc -c < /tmp/large; head -c 9000000 /dev/zero > /dev/shm/large"
    written = job.shell(f"{fill}; wc -c < /dev/shm/large", limits=Limits(tmp_bytes=MIB))
    assert written.count("No space left on device") == 2
    assert [word for word in written.split() if word.isdigit()] == [str(MIB)] * 2


def test_a_folder_too_deep_to_measure_ends_the_turn(job: Job) -> None:
    script = "import os, time\nfor _ in range(50):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\ntime.sleep(1000)"
    with pytest.raises(TurnFailed, match="cannot be measured: File name too long"):
        job.python(script)


def test_what_an_earlier_turn_left_in_its_home_does_no_harm(job: Job) -> None:
    """A chain of folders deeper than Python recurses, which the next turn neither walks nor fails at."""
    script = "import os\nos.chdir('/home/agent')\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')"
    try:
        job.python(script)
        assert job.shell("echo works") == "works\n"
    finally:
        subprocess.run(["rm", "-r", job.home / "d"], check=True)  # pytest's own clearing away would recurse


# --- Outliving


def test_nothing_outlives_its_turn(job: Job) -> None:
    """Sent to the background, to another session, forked twice, deaf to signals: gone when the turn has ended."""
    marker = sleeper()
    written = job.shell(f"""
nohup sleep {marker} &
setsid sleep {marker} &
(setsid sh -c 'trap "" TERM HUP; sleep {marker}; sleep {marker}' &)
while [ $(pgrep -cx sleep) -lt 3 ]; do :; done
echo ready""")
    assert "ready" in written
    assert not processes("sleep", marker)


def test_nothing_outlives_the_time_limit(job: Job) -> None:
    marker = sleeper()
    with pytest.raises(ProgramTimedOut, match="did not end within 1 s"):
        job.shell(f"trap '' TERM; setsid sleep {marker} & sleep {marker}; sleep {marker}", limit_s=1)
    assert not processes("sleep", marker)


def test_nothing_outlives_a_killed_worker(job: Job) -> None:
    marker = sleeper()
    script = f"""
import sys
from pathlib import Path
from agent.coding_agent.runner import RunRequest, run
tree, home = map(Path, sys.argv[1:])
command = ["sh", "-c", "setsid sleep {marker} & trap '' TERM; sleep {marker}"]
run(RunRequest("command", "{marker}", tree, home, 100, lambda: False, command=command))
"""
    with subprocess.Popen([sys.executable, "-c", script, job.tree, job.home]) as worker:
        until(partial(processes, "sleep", marker))
        os.kill(worker.pid, signal.SIGKILL)
    assert until(lambda: not processes("sleep", marker))
    job.shell("true")
    folders = Path(tempfile.gettempdir()).glob(f"{scratch.PREFIX}*")
    left = subprocess.run(["grep", "-rls", marker, "/dev/null", *folders], capture_output=True, check=False)
    assert left.stdout == b"", "the prompt of the killed worker is left"
