"""Command lines of the sandbox."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.errors import TurnFailed
from agent.sandbox import bubblewrap
from agent.sandbox.bubblewrap import PATH, Limits, Sandbox


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for name in ("tree", "home", "run"):
        (tmp_path / "job" / name).mkdir(parents=True)
    bubblewrap.grant_write(tmp_path / "job")
    return tmp_path / "job"


def sandbox(job: Path, *read_only: Path, **env: str) -> Sandbox:
    return Sandbox(
        job / "tree",
        job / "home",
        job / "run",
        env={"PATH": PATH, **env},
        cpu_s=9,
        limits=Limits(processes=50, open_files=60),
        read_only=read_only,
        hidden=(job.parent / "secrets",),
    )


def output(sandbox: Sandbox, script: str) -> list[str]:
    argv = bubblewrap.command(sandbox, ["sh", "-c", script])
    done = subprocess.run(argv, env={"PATH": PATH}, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_program_runs_in_the_work_tree_with_its_user_environment_and_limits(job: Path) -> None:
    limits = "prlimit --nproc --nofile --cpu --output SOFT --noheadings --raw"
    script = f"pwd; id -u; echo $NAME; {limits}; nice; cat /proc/sys/kernel/hostname"
    printed = output(sandbox(job, NAME="a value"), script)
    nice = min(19, os.nice(0) + 10)  # 10 above that of the tests
    assert printed == ["/work", "1000", "a value", "50", "60", "9", str(nice), "agent"]


def test_folder_is_visible_only_if_it_is_chosen(job: Path) -> None:
    program = job.parent / "program"
    program.mkdir()
    program.chmod(0o777)  # only the sandbox prevents the agent from writing
    (program / "agent").write_text("an agent")
    assert output(sandbox(job), f"ls {program} 2>/dev/null || echo hidden") == ["hidden"]
    script = f"cat {program}/agent; echo; touch {program}/new 2>/dev/null || echo read-only"
    assert output(sandbox(job, program), script) == ["an agent", "read-only"]


@pytest.mark.long
def test_each_visible_file_of_the_machine_is_known_to_be_visible(job: Path) -> None:
    """List the files that the sandbox shows under the path that they have on the machine."""
    (job.parent / "program").mkdir()
    (job.parent / "program/agent").touch()
    own = ("/etc/passwd", "/etc/hosts", "/run/agent/*", "/home/*", "/proc/*", "/dev/*")
    private = " ".join(f"-not -path '{path}'" for path in own)
    shown = [
        Path(path)
        for path in output(sandbox(job, job.parent / "program"), f"find / -maxdepth 3 -not -type d {private}")
    ]
    assert {Path("/usr/bin/env"), Path("/etc/nsswitch.conf")} <= set(shown)
    assert [path for path in shown if not bubblewrap.is_visible(path, [job.parent / "program"])] == []
    for path in (Path("/etc/shadow"), Path("/etc/ssl/private/key"), job / "tree", job.parent / "programs"):
        assert not bubblewrap.is_visible(path, [job.parent / "program"])


@pytest.mark.parametrize("name", ["/", "/etc", "/root", ".", "job", "job/tree", "secrets", "secrets/key"])
def test_folder_that_would_show_hidden_files_is_refused(job: Path, name: str) -> None:
    (job.parent / "secrets" / "key").mkdir(parents=True)
    with pytest.raises(TurnFailed, match="cannot be made visible"):
        bubblewrap.command(sandbox(job, job.parent / name), ["true"])


def test_link_to_a_hidden_folder_is_refused(job: Path) -> None:
    (job.parent / "link").symlink_to("/etc")
    with pytest.raises(TurnFailed, match="cannot be made visible"):
        bubblewrap.command(sandbox(job, job.parent / "link"), ["true"])


def test_granted_folder_can_be_written_by_the_agent(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").touch()
    bubblewrap.grant_write(tmp_path / "a")
    assert all(bubblewrap.is_write_granted(path) for path in (tmp_path / "a", deep, deep / "file"))


def test_first_missing_program_is_named_with_its_package(tmp_path: Path) -> None:
    expected = "bwrap is not installed (Debian, Ubuntu: apt-get install bubblewrap)"
    assert bubblewrap.unavailable_reason(str(tmp_path)) == expected
    assert bubblewrap.unavailable_reason() is None
