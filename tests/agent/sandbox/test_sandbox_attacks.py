"""Attacks of a coding agent from within its sandbox, with the preset `command`. Each attack fails."""

import json
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
from tests.agent.servers.model_server import KEY, ModelServer, Text
from tests.processes.waiting import killed_on_failure, until

TOKEN = "ghp_the_git_token_of_the_project"


@pytest.mark.long
def test_agent_cannot_find_the_model_key(job: Job) -> None:
    """Search every visible environment, every readable file, and the responses of the gateway."""
    ask = """
import os, urllib.error, urllib.request
request = urllib.request.Request(os.environ["MODEL_SERVER"] + "/chat/completions", b"{}")
answer = urllib.request.urlopen(request)
print(answer.status, answer.headers, answer.read())
"""
    search = "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; grep -rs sk- /run /home /tmp /etc /work"
    with ModelServer([Text("Hello.")]) as server:
        output = job.python(ask, upstream=server.url, model_key=KEY)
        output += job.shell(search, upstream=server.url, model_key=KEY)
        assert server.requests[0][1]["authorization"] == f"Bearer {KEY}"
    assert "200" in output
    assert "MODEL_SERVER" in output
    assert KEY not in output


ABUSE = """
import http.client, json, os
host, token = os.environ["MODEL_SERVER"].removeprefix("http://").split("/")
for method, target in json.loads(TARGETS):
    end = http.client.HTTPConnection(host)
    end.putrequest(method, target, skip_host=True)
    end.putheader("Host", "x")
    end.putheader("Content-Length", "1000000")
    end.putheader("Authorization", f"Bearer {token}")
    end.endheaders(b"{}" + b" " * 999998)
    answer = end.getresponse()
    print(answer.status, method, target, answer.read().decode(), flush=True)  # or a line of the gateway may cut one
"""
TARGETS = [
    *[("DELETE", "/files/file-abc123"), ("DELETE", "/chat/completions"), ("GET", "/chat/completions")],
    *[("POST", "/fine_tuning/jobs"), ("GET", "/organization/usage/completions?start_time=1"), ("GET", "/files")],
    *[("POST", "/chat/completions/../../files"), ("POST", "/chat/%2e%2e/files"), ("POST", "//chat//completions/x")],
    *[
        ("POST", "/chat/completions%2f..%2f..%2ffiles"),
        ("POST", "/chat\\completions"),
        ("POST", "/x?/chat/completions"),
    ],
    *[("POST", "/chat/completions/"), ("POST", "/Chat/Completions"), ("POST", "/chat/completions#/../files")],
    *[("POST", "http://127.0.0.1/chat/completions"), ("PATCH", "/models"), ("PUT", "/"), ("OPTIONS", "*")],
]


@pytest.mark.long
def test_agent_can_use_the_model_key_for_model_calls_only(job: Job) -> None:
    script = ABUSE.replace("TARGETS", repr(json.dumps(TARGETS)))
    with ModelServer([Text("Hello.")]) as server:
        output = job.python(script, upstream=server.url, model_key=KEY)
        assert server.requests == []
    answers = [line for line in output.splitlines() if line.startswith("403 ")]
    assert len(answers) == len(TARGETS)
    assert all(
        "the agent may only send GET /models, GET /v1/models, POST /chat/completions, " in each for each in answers
    )
    assert "the gateway refused DELETE /files/file-abc123: the agent may only send" in output.splitlines()[0]


@pytest.mark.long
def test_agent_cannot_send_requests_to_the_model_server_without_end(job: Job) -> None:
    ask = """
import os, urllib.request
while True:
    urllib.request.urlopen(os.environ["MODEL_SERVER"] + "/chat/completions", b"{}")
"""
    with (
        ModelServer([Text("Hello.")]) as server,
        pytest.raises(TurnFailed, match="the agent was stopped: it sent more than 5 requests to the model server"),
    ):
        job.python(ask, upstream=server.url, model_key=KEY, limits=Limits(model_requests=5))
    assert len(server.requests) == 5


@pytest.mark.long
def test_agent_cannot_see_the_environment_of_the_service_or_the_processes_of_the_machine(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count the processes: init, the starter of the agent, the agent, and the processes of the listing."""
    monkeypatch.setenv("GIT_TOKEN", TOKEN)
    output = job.shell(f"env; cat /proc/*/environ /proc/{os.getpid()}/environ | tr '\\0' '\\n'")
    assert "HOME=/home/agent" in output
    assert TOKEN not in output
    seen = job.shell("for each in /proc/[0-9]*; do echo ${each#/proc/}; done").split()
    assert len(seen) <= 5
    assert str(os.getpid()) not in seen


@pytest.mark.long
def test_agent_cannot_read_the_data_of_the_service_or_of_another_job(job: Job) -> None:
    others = [job.data / "control.db", job.data / "jobs/2/tree/secret", job.git / "config", job.data, Path.home()]
    output = job.shell("; ".join(f"cat '{path}' || ls '{path}'" for path in others))
    pruned = f"-path /usr -prune -o -path '{sys.base_prefix}' -prune"
    output += job.shell(f"find / {pruned} -o -name control.db -print; cat /proc/1/root/etc/shadow /etc/shadow")
    assert SECRET not in output
    assert "control.db" not in output.replace(f"{job.data}/control.db", "")
    assert "root:x" not in output
    assert "root:*" not in output


def test_symbolic_link_does_not_lead_out_of_the_sandbox(job: Job) -> None:
    output = job.shell(
        f"ln -s {job.data} up; ln -s {job.data}/control.db file; ln -s ../../.. out; cat file up/control.db; ls out/"
    )
    assert SECRET not in output
    assert output.count("No such file") == 2
    assert "control.db" not in output.replace(f"{job.data}/control.db", "").replace("up/control.db", "")


@pytest.mark.long
def test_symbolic_link_of_an_earlier_turn_does_not_change_its_target(job: Job) -> None:
    """Plant links to secrets; before the next turn, the owner of the links changes, but not that of their targets."""
    secret = job.data / "control.db"
    secret.chmod(0o600)
    job.shell(f"ln -s {secret} file; ln -s {job.data} ~/.config; ln -s {job.data} ~/.local")
    assert SECRET not in job.shell("cat file")
    assert secret.stat().st_uid == os.geteuid()
    assert sorted(path.name for path in job.data.iterdir()) == ["control.db", "jobs"]


def test_agent_cannot_write_to_the_git_directory(job: Job) -> None:
    """Write to the job's git directory, which is outside the sandbox, and create another one in the work tree."""
    before = sorted(job.git.rglob("*"))
    output = job.shell(
        f"echo evil > {job.git}/hooks/pre-commit; git config core.fsmonitor evil; git config alias.commit '!evil';"
        " git rev-parse --git-dir; git config --system core.hooksPath /work"
    )
    assert sorted(job.git.rglob("*")) == before
    assert (job.git / "config").read_text() == SECRET
    assert not (job.tree / ".git").exists()
    assert "not a git repository" in output or "not in a git directory" in output


def test_folder_that_contains_the_job_cannot_be_made_readable(job: Job) -> None:
    for folder in (job.data, job.tree, Path("/"), Path("/etc"), Path("/root")):
        with pytest.raises(TurnFailed, match="cannot be made visible to the agent"):
            job.shell("true", read_only=(folder,))


def test_hidden_folder_in_a_readable_folder_stays_hidden(job: Job, tmp_path: Path) -> None:
    (tmp_path / "tools/keys").mkdir(parents=True)
    (tmp_path / "tools/keys/key").write_text(SECRET)
    (tmp_path / "tools/program").write_text("there")
    shown = {"read_only": (tmp_path / "tools",), "hidden": (tmp_path / "tools/keys",)}
    output = job.shell(
        f"cat {tmp_path}/tools/program {tmp_path}/tools/keys/key; touch {tmp_path}/tools/keys/x", **shown
    )
    assert "there" in output
    assert SECRET not in output
    assert "Read-only" in output


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


@pytest.mark.long
def test_agent_cannot_reach_any_network(job: Job) -> None:
    """Try the loopback of the machine by TCP, UDP and an abstract Unix socket, other addresses, and a name server."""
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
        output = job.python(
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
    assert output.count("not ") == 7 or "reached udp" in output
    assert "reached tcp" not in output
    assert "reached own" not in output
    assert "reached abstract" not in output
    assert "beyond" not in "".join(line for line in output.splitlines() if line.startswith("reached"))


@pytest.mark.long
def test_agent_has_no_privileges_and_cannot_gain_any(job: Job) -> None:
    output = job.shell("id -u; grep -E '^(Cap|NoNewPrivs)' /proc/self/status; unshare -U true; mount -t tmpfs x /work")
    lines = output.splitlines()
    assert lines[0] == "1000"
    capabilities = [line.split()[1] for line in lines if line.startswith("Cap")]
    assert capabilities == ["0" * 16] * 5
    assert "NoNewPrivs:\t1" in lines
    assert "unshare failed" in output
    assert "mount:" in output


def test_agent_can_write_only_to_its_own_folders(job: Job) -> None:
    script = (
        "for each in / /usr /etc /bin /dev /run /run/agent /proc/sys/kernel; do touch $each/x && echo wrote $each; done"
    )
    output = job.shell(
        f"{script}; for each in /work /home/agent /tmp /dev/shm; do touch $each/x && echo may $each; done"
    )
    assert "wrote" not in output
    assert output.count("may ") == 4


@pytest.mark.long
def test_agent_is_not_root_outside_the_sandbox(job: Job, tmp_path: Path) -> None:
    marker = sleeper()
    seen: list[int] = []

    def look() -> bool:
        seen.extend(Path(f"/proc/{pid}").stat().st_uid for pid in processes("sleep", marker))
        return bool(seen)

    with pytest.raises(TurnFailed):
        job.run(command=["sleep", marker], is_stopped=look)
    assert 0 not in seen


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


@pytest.mark.long
def test_fork_bomb_stops_at_the_limit_and_leaves_no_process(job: Job) -> None:
    output = job.python(FORKS, limits=Limits(processes=60))
    assert "stopped at 5" in output
    assert not processes(PYTHON, "-c", FORKS)


def test_one_process_cannot_use_more_memory_than_the_limit(job: Job) -> None:
    script = "try:\n    bytearray(600 * 1024 * 1024)\n    print('took it')\nexcept MemoryError:\n    print('refused')"
    assert job.python(script, limits=Limits(memory_bytes=300 * MIB)) == "refused\n"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["bytearray(80 * MIB)", "mmap.mmap(-1, 80 * MIB)"])
def test_several_processes_together_cannot_use_more_memory_than_the_limit(job: Job, kind: str) -> None:
    """Use private memory, and memory that processes could share."""
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


@pytest.mark.long
def test_agent_cannot_fill_the_disk_with_many_files(job: Job) -> None:
    script = "i=0; while :; do i=$((i+1)); head -c 10000000 /dev/zero > ~/$i; sleep 0.01; done"
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, sum(path.stat().st_size for path in job.home.iterdir()))
        return False

    with pytest.raises(TurnFailed, match=r"wrote more than 0\.048\d+ GiB to its work tree and home"):
        job.shell(script, limits=Limits(disk_bytes=50 * MIB), is_stopped=look)
    assert 0 < most < 2_000 * MIB


@pytest.mark.long
@pytest.mark.parametrize("folder", ["/work", "/home/agent"])
def test_agent_cannot_fill_the_disk_with_deleted_files_that_it_has_open(job: Job, folder: str) -> None:
    """Write 200 MB, which count once although two processes have the files open, and then 300 MB."""
    script = f"""
import os, time
files = [open("{folder}/x", "wb", buffering=0)]
for n in range(20):
    files.append(open(f"{folder}/{{n}}", "wb", buffering=0))
    os.unlink(f"{folder}/{{n}}")
    files[-1].write(bytes(10_000_000))
os.fork()
time.sleep(1000)
"""
    with pytest.raises(ProgramTimedOut):
        job.python(script, limits=Limits(disk_bytes=250 * MIB), limit_s=4)
    with pytest.raises(TurnFailed, match=r"wrote more than 0\.244"):
        job.python(script.replace("range(20)", "range(30)"), limits=Limits(disk_bytes=250 * MIB), limit_s=20)


@pytest.mark.long
def test_files_of_a_turn_over_the_disk_limit_are_removed_at_once(job: Job) -> None:
    """Fill the home folder, and make it unreadable: the next turn has room again."""
    script = "mkdir ~/a; head -c 60000000 /dev/zero > ~/a/x; chmod 000 ~/a; sleep 1000"
    with pytest.raises(TurnFailed, match="wrote more than|cannot be measured"):
        job.shell(script, limits=Limits(disk_bytes=50 * MIB))
    assert not job.home.exists()
    assert not job.tree.exists()


@pytest.mark.long
def test_agent_cannot_fill_the_disk_with_empty_files(job: Job) -> None:
    script = "import itertools\nfor n in itertools.count():\n    open(str(n), 'w').close()"
    with pytest.raises(TurnFailed, match="wrote more than"):
        job.python(script, limits=Limits(disk_bytes=20 * MIB))


@pytest.mark.long
def test_files_and_temporary_folders_have_a_maximum_size(job: Job) -> None:
    output = job.shell("head -c 3000000 /dev/zero > large; wc -c < large", limits=Limits(file_bytes=MIB))
    assert output.split()[-1] == str(MIB)
    fill = "head -c 9000000 /dev/zero > /tmp/large; wc -c < /tmp/large; head -c 9000000 /dev/zero > /dev/shm/large"
    output = job.shell(f"{fill}; wc -c < /dev/shm/large", limits=Limits(tmp_bytes=MIB))
    assert output.count("No space left on device") == 2
    assert [word for word in output.split() if word.isdigit()] == [str(MIB)] * 2


@pytest.mark.long
def test_folder_that_is_too_deep_to_measure_fails_the_turn(job: Job) -> None:
    script = "import os, time\nfor _ in range(50):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\ntime.sleep(1000)"
    with pytest.raises(TurnFailed, match="cannot be measured: File name too long"):
        job.python(script)


@pytest.mark.long
def test_deep_folders_of_an_earlier_turn_do_not_fail_the_next_one(job: Job) -> None:
    """Nest folders deeper than Python's recursion limit in the home folder."""
    script = "import os\nos.chdir('/home/agent')\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')"
    try:
        job.python(script)
        assert job.shell("echo works") == "works\n"
    finally:
        subprocess.run(["rm", "-r", job.home / "d"], check=True)  # pytest's clean-up would recurse


def test_no_process_outlives_its_turn(job: Job) -> None:
    """Start processes in the background, in another session, after a double fork, and with ignored signals."""
    marker = sleeper()
    output = job.shell(f"""
nohup sleep {marker} &
setsid sleep {marker} &
(setsid sh -c 'trap "" TERM HUP; sleep {marker}; sleep {marker}' &)
while [ $(pgrep -cx sleep) -lt 3 ]; do :; done
echo ready""")
    assert "ready" in output
    assert not processes("sleep", marker)


@pytest.mark.long
def test_no_process_outlives_the_time_limit(job: Job) -> None:
    marker = sleeper()
    with pytest.raises(ProgramTimedOut, match="did not end within 1 s"):
        job.shell(f"trap '' TERM; setsid sleep {marker} & sleep {marker}; sleep {marker}", limit_s=1)
    assert not processes("sleep", marker)


@pytest.mark.long
def test_no_process_outlives_a_killed_worker(job: Job) -> None:
    marker = sleeper()
    script = f"""
import sys
from pathlib import Path
from agent.coding_agent.runner import RunRequest, run
tree, home = map(Path, sys.argv[1:])
command = ["sh", "-c", "setsid sleep {marker} & trap '' TERM; sleep {marker}"]
run(RunRequest("command", "{marker}", tree, home, 100, lambda: False, command=command))
"""
    with subprocess.Popen([sys.executable, "-c", script, job.tree, job.home]) as worker, killed_on_failure(worker):
        until(partial(processes, "sleep", marker))
        os.kill(worker.pid, signal.SIGKILL)
    assert until(lambda: not processes("sleep", marker))
    job.shell("true")
    folders = Path(tempfile.gettempdir()).glob(f"{scratch.PREFIX}*")
    left = subprocess.run(["grep", "-rls", marker, "/dev/null", *folders], capture_output=True, check=False)
    assert left.stdout == b"", "the prompt of the killed worker was left on disk"
