"""Attacks by files in the work tree: none of them runs, reads files outside, or gets the token."""

import base64
import os
import shutil
import socket
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from agent.errors import TurnFailed
from agent.git import commands
from agent.git.commands import Git
from agent.git.remote import USERNAME
from tests.agent.git_job import BRANCH, TOKEN, Job, job_of, site
from tests.agent.servers.git_server import FILE, LINK, SUBMODULE, GitServer, serving

SECRET = b"what only the service may read"
CONFIG = """
[core]
    repositoryformatversion = 0
    fsmonitor = {program}
    hooksPath = {path}/hooks
    sshCommand = {program}
    pager = {program}
    editor = {program}
    askPass = {program}
    gitProxy = {program}
[filter "evil"]
    clean = {program}
    smudge = {program}
    process = {program}
    required = true
[diff "evil"]
    textconv = {program}
    command = {program}
[merge "evil"]
    driver = {program}
[credential]
    helper = !{program}
[alias]
    add = !{program}
    push = !{program}
    commit-tree = !{program}
[gpg]
    program = {program}
[commit]
    gpgSign = true
[push]
    gpgSign = true
[include]
    path = {path}/more
[protocol]
    allow = always
[submodule]
    recurse = true
[url "http://127.0.0.1:9/"]
    insteadOf = http://127.0.0.1
    pushInsteadOf = http://127.0.0.1
"""
PAYLOADS = ("pre-commit", "post-commit", "pre-push", "post-checkout", "reference-transaction", "post-index-change")


@pytest.fixture
def job(job: Job, tmp_path: Path) -> Job:
    (tmp_path / "secret").write_bytes(SECRET)
    return job


def hostile_repository(path: Path, ran: Path) -> None:
    """Create a git directory whose configuration and hooks create the file `ran` when git runs them."""
    program = path.parent / f"{path.name}-program"
    path.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho $0 $* >> {ran}\ncat\n")
    program.chmod(0o755)
    for each in ("objects", "refs/heads", "hooks", "info"):
        (path / each).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text(CONFIG.format(program=program, path=path))
    for each in PAYLOADS:
        hook = path / "hooks" / each
        hook.write_text(f"#!/bin/sh\necho {each} >> {ran}\n")
        hook.chmod(0o755)


def plant(where: str, tree: Path, ran: Path) -> None:
    """Create hostile repositories in the work tree: at the place of its own, or at all others."""
    folders = {"folder": [".git"], "others": ["src/deep/.git", ".GIT", "src/.Git", "bare"]}
    for name in folders.get(where, ["src/repository"]):
        hostile_repository(tree / name, ran)
    if where == "file":
        (tree / ".git").write_text(f"gitdir: {tree}/src/repository\n")
    if where == "link":
        (tree / ".git").symlink_to(tree / "src" / "repository")
    if (
        where == "others"
    ):  # HEAD, objects and refs in the work tree itself: git recognises such a folder as a repository
        for each in (tree / "bare").iterdir():
            each.rename(tree / each.name)


@pytest.mark.long
@pytest.mark.parametrize("where", ["folder", "file", "link", "others"])
def test_repository_in_the_work_tree_runs_nothing(server: GitServer, job: Job, tmp_path: Path, where: str) -> None:
    ran = tmp_path / "ran"
    plant(where, job.tree, ran)
    (job.tree / ".gitattributes").write_text("* filter=evil diff=evil merge=evil ident\n")
    (job.tree / "honest").write_text("work")
    job.send()
    job.check_out()
    pushed = server.read("team/site", BRANCH)
    assert pushed["honest"] == (FILE, b"work")
    assert not [name for name in pushed if ".git" in name.lower().split("/")]
    assert not ran.exists()


def test_environment_of_the_service_is_not_used(
    server: GitServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, home = tmp_path / "ran", tmp_path / "home"
    hostile_repository(home / "repository", ran)
    (home / "repository" / "config").rename(home / ".gitconfig")
    (home / ".netrc").write_text("machine 127.0.0.1 login thief password from-netrc\n")
    for name, value in {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_DIR": str(home / "repository"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(home / "repository-program"),
        "GIT_SSH_COMMAND": str(home / "repository-program"),
        "GIT_ASKPASS": str(home / "repository-program"),
        "GIT_EXTERNAL_DIFF": str(home / "repository-program"),
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_TRACE_CURL": str(tmp_path / "trace"),
        "https_proxy": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    job.send()
    assert {token for _, token in server.requests} == {"", TOKEN}
    assert not ran.exists()
    assert not (tmp_path / "trace").exists()


def test_configuration_in_the_agents_home_is_not_used(server: GitServer, job: Job, tmp_path: Path) -> None:
    ran, home = tmp_path / "ran", job.workspace.home
    hostile_repository(home / "repository", ran)
    (home / "repository" / "config").rename(home / ".gitconfig")
    (home / ".netrc").write_text("machine 127.0.0.1 login thief password from-netrc\n")
    (job.tree / "a").write_text("1")
    job.send()
    assert {token for _, token in server.requests} == {"", TOKEN}
    assert not ran.exists()


@pytest.mark.long
def test_hostile_submodules_run_nothing(server: GitServer, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hostile = (
        f'[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c "touch% {ran}"\n\tupdate = !touch {ran}\n'
        f'\tfetchRecurseSubmodules = true\n\tignore = none\n[submodule "../../x"]\n\tpath = ../x\n\turl = -u./{ran}\n'
    )
    job = job_of(tmp_path / "job", server.create("team/site", {"sub": (SUBMODULE, b"1" * 40), "a": b""}))
    job.check_out()
    (job.tree / ".gitmodules").write_text(hostile)
    hostile_repository(job.tree / "sub" / ".git", ran)
    (job.tree / "sub" / "file").write_text("x")
    job.send()
    job.check_out()
    (job.tree / ".gitmodules").write_text("[not\0 even\n= a configuration")
    job.send()
    assert server.read("team/site", BRANCH)["sub"] == (SUBMODULE, b"1" * 40)
    assert not ran.exists()


@pytest.mark.long
def test_symbolic_links_are_committed_as_links_and_not_followed(server: GitServer, job: Job, tmp_path: Path) -> None:
    (job.tree / "passwd").symlink_to("/etc/passwd")
    (job.tree / "secret").symlink_to(tmp_path / "secret")
    (job.tree / "git").symlink_to(job.workspace.git)
    (job.tree / "src" / "page.md").unlink()
    (job.tree / "src").rmdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "page.md").write_bytes(SECRET)
    (job.tree / "src").symlink_to(outside)
    for name in (".gitignore", ".gitattributes"):
        (job.tree / name).symlink_to(tmp_path / "secret")
    job.send()
    pushed = server.read("team/site", BRANCH)
    assert pushed == {
        "README.md": (FILE, b"# Site\n"),
        "passwd": (LINK, b"/etc/passwd"),
        "secret": (LINK, os.fsencode(tmp_path / "secret")),
        "git": (LINK, os.fsencode(job.workspace.git)),
        "src": (LINK, os.fsencode(outside)),
        ".gitignore": (LINK, os.fsencode(tmp_path / "secret")),
        ".gitattributes": (LINK, os.fsencode(tmp_path / "secret")),
    }
    job.check_out()
    (job.tree / "src").unlink()
    job.check_out()
    assert (outside / "page.md").read_bytes() == SECRET


def test_folder_that_became_a_file_or_a_loop_is_committed_as_such(server: GitServer, job: Job) -> None:
    (job.tree / "src" / "page.md").unlink()
    (job.tree / "src").rmdir()
    (job.tree / "src").write_text("a file")
    first = job.commit()
    (job.tree / "src").unlink()
    (job.tree / "src").symlink_to("src")
    job.push(str(job.commit()))
    assert first
    assert server.read("team/site", BRANCH)["src"] == (LINK, b"src")


@pytest.mark.long
def test_permissions_of_a_links_target_do_not_change(job: Job, tmp_path: Path) -> None:
    (tmp_path / "secret").chmod(0o400)
    (job.tree / "secret").symlink_to(tmp_path / "secret")
    job.commit()
    job.check_out()
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o400


def test_work_tree_that_was_replaced_by_a_link_is_refused(job: Job, tmp_path: Path) -> None:
    job.tree.rename(tmp_path / "elsewhere")
    job.tree.symlink_to(tmp_path)
    for step in (job.commit, job.check_out):
        with pytest.raises(TurnFailed):
            step()
    assert (tmp_path / "secret").read_bytes() == SECRET


def test_names_that_look_like_options_or_commands_are_only_names(server: GitServer, job: Job, tmp_path: Path) -> None:
    names = {
        "--upload-pack=touch ran", "-rf", "--", "--exec-path=.", ":(exclude)*", ":!x", "*", "$(touch ran)",
        "`touch ran`", "a\nb", "\udcff",
    }  # fmt: skip
    for name in names:
        (job.tree / name).write_text("x")
    job.send()
    assert server.read("team/site", BRANCH).keys() == {"README.md", "src/page.md", *names}
    assert not list(tmp_path.rglob("ran"))


def test_name_that_is_dot_git_on_another_system_fails_the_turn(job: Job) -> None:
    for name in ("git~1", ".git ", ".git::$INDEX_ALLOCATION", ".g\u200cit", ".git."):
        (job.tree / name).mkdir()
        (job.tree / name / "config").write_text("x")
        with pytest.raises(TurnFailed, match="git add failed .*invalid path"):
            job.commit()
        shutil.rmtree(job.tree / name)


def test_pipes_and_sockets_are_not_committed(server: GitServer, job: Job) -> None:
    os.mkfifo(job.tree / "pipe")
    os.mkfifo(job.tree / "src" / ".gitignore")
    os.mkfifo(job.tree / ".gitattributes")
    (job.tree / "README.md").unlink()
    os.mkfifo(job.tree / "README.md")
    listening = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(job.tree)  # the path of a socket has a maximum length
    listening.bind("socket")
    os.chdir(here)
    listening.close()
    job.send()
    assert server.read("team/site", BRANCH).keys() == {"src/page.md"}


@pytest.mark.night
def test_file_names_of_a_hostile_tree_are_not_collected_in_memory(job: Job) -> None:
    """Create 20,000 names of 4 KiB, together 76 MiB; the limit is 32 MiB, and less than 8 MiB are in memory at once."""
    deep = "/".join(["x" * 250] * 14)
    (job.tree / deep).mkdir(parents=True)
    for number in range(20_000):
        (job.tree / deep / f"{number:0240}").touch()
    tracemalloc.start()
    with pytest.raises(TurnFailed, match="more than 32 MiB: too many to commit"):
        job.commit()
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 8 * 1024**2


def test_file_that_makes_git_use_too_much_memory_fails_the_turn(job: Job) -> None:
    """Create a large .gitignore, which git reads as a whole; versions after 2.45 do not read one of this size."""
    with (job.tree / ".gitignore").open("wb") as file:
        file.truncate(commands.MEMORY_BYTES + 1024**3)
    with pytest.raises(TurnFailed, match="git needs more than 2 GiB of memory|over 100 MiB are not committed"):
        job.commit()


@pytest.mark.long
def test_commands_of_a_job_have_limits_of_memory_and_output(job: Job) -> None:
    limited = Git(job.workspace.folder, None, time.monotonic() + 60, lambda: False, job.lines.append)
    shown = limited.run_program("prlimit", "--data", "--output", "SOFT", "--noheadings", "--raw", environ={})
    assert shown == str(commands.MEMORY_BYTES)
    with pytest.raises(TurnFailed, match="yes printed more than 1 MiB"):
        limited.run_program("yes", environ={})
    tracemalloc.start()
    limited.run_program("sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x >&2; echo fatal >&2", environ={})
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 8 * 1024**2
    assert job.lines[-1].endswith("fatal")


def test_huge_ignored_file_does_not_fail_the_turn(server: GitServer, job: Job) -> None:
    (job.tree / ".gitignore").write_text("huge\n")
    with (job.tree / "huge").open("wb") as file:
        file.truncate(2**40)
    job.send()
    assert "huge" not in server.read("team/site", BRANCH)


@pytest.mark.long
def test_folder_deeper_than_any_path_is_removed(server: GitServer, job: Job) -> None:
    parent = os.open(job.tree, os.O_DIRECTORY)
    for _ in range(60):
        os.mkdir("d" * 200, dir_fd=parent)
        deeper = os.open("d" * 200, os.O_DIRECTORY, dir_fd=parent)
        os.close(parent)
        parent = deeper
    os.mkdir(".git", dir_fd=parent)
    os.close(os.open("too-deep", os.O_CREAT, dir_fd=parent))
    os.close(parent)
    (job.tree / "honest").write_text("work")
    job.send()
    job.check_out()
    assert sorted(each.name for each in job.tree.iterdir()) == ["README.md", "honest", "src"]


@pytest.mark.long
def test_files_without_permissions_are_committed_and_removed(server: GitServer, job: Job) -> None:
    (job.tree / "shut").mkdir()
    (job.tree / "shut" / "file").write_text("x")
    (job.tree / "shut" / "file").chmod(0)
    (job.tree / "shut").chmod(0)
    job.send()
    assert server.read("team/site", BRANCH)["shut/file"] == (FILE, b"x")
    (job.tree / "shut").chmod(0)
    job.check_out()


def test_token_is_not_in_a_file_an_argument_or_an_environment(server: GitServer, job: Job, tmp_path: Path) -> None:
    seen: list[bytes] = []

    def look() -> None:
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environ = (each / "environ").read_bytes()
                if b"GIT_ALLOW_PROTOCOL=http:https" in environ:
                    seen.append(environ + (each / "cmdline").read_bytes())

    server.on_request = look
    (job.tree / "a").write_text("1")
    job.send()
    assert any(b"git-remote-http" in each for each in seen)
    assert not any(TOKEN.encode() in each for each in seen)
    for file in job.workspace.folder.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()


@pytest.mark.parametrize("after_token", [False, True])
def test_redirect_to_another_host_does_not_get_the_token(server: GitServer, tmp_path: Path, after_token: bool) -> None:
    site(server)
    with serving(tmp_path / "other") as other:
        other.create("team/site", {"a": b""})
        server.create("team/moved", {"a": b""})
        server.redirects = {"/team/moved": f"{other.url}/team/site.git"}
        server.redirects_after_token = after_token
        job = job_of(tmp_path / "job", f"{server.url}/team/moved.git")
        with pytest.raises(TurnFailed):
            job.check_out()
        assert {token for _, token in other.requests} == {""}


@pytest.mark.long
def test_renamed_repository_is_found_by_its_redirect(server: GitServer, tmp_path: Path) -> None:
    server.redirects = {"/team/old": f"{site(server)}"}
    job = job_of(tmp_path / "job", f"{server.url}/team/old.git")
    job.check_out()
    (job.tree / "a").write_text("1")
    assert job.send() == server.tip("team/site", BRANCH)


def test_token_in_a_response_is_not_in_the_log(server: GitServer, tmp_path: Path) -> None:
    server.tokens["read-token"] = "read"
    server.echoes = True
    job = job_of(tmp_path / "job", site(server), "read-token")
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(TurnFailed, match=r"Sent: Basic \[token\] and \[token\]") as raised:
        job.send()
    text = str(raised.value) + "".join(job.lines)
    assert "read-token" not in text
    assert base64.b64encode(f"{USERNAME}:read-token".encode()).decode() not in text
    assert any("[token]" in line for line in job.lines)
