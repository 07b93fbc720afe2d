"""Checkout, commit and push against a real git server."""

import threading
from pathlib import Path

import pytest

from agent.errors import PushRefused, TurnFailed
from tests.agent.git_job import BRANCH, TOKEN, Job, job_of, site
from tests.agent.servers.git_server import FILE, LINK, PROGRAM, SUBMODULE, GitServer, git


@pytest.mark.long
def test_changes_become_one_commit_on_the_jobs_branch(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    assert not job.check_out().follows_up
    (job.tree / "src" / "page.md").write_text("new\n")
    (job.tree / "added.md").write_text("added\n")
    (job.tree / "README.md").unlink()
    assert job.send("  \nFix the page\nand more") == server.tip("team/site", BRANCH)
    assert server.read("team/site", BRANCH) == {"src/page.md": (FILE, b"new\n"), "added.md": (FILE, b"added\n")}
    assert server.log("team/site", BRANCH, "%s|%an|%cn|%ct") == [
        "Fix the page|Readership|Readership|1777636800",
        "First|Owner|Owner|1700000000",
    ]
    assert server.log("team/site", "main") == ["First"]


@pytest.mark.long
def test_follow_up_starts_from_the_tip_of_the_jobs_branch(server: GitServer, tmp_path: Path) -> None:
    url = site(server)
    first = job_of(tmp_path / "job", url)
    first.check_out()
    (first.tree / "a").write_text("1")
    first.send("First message")
    server.commit("team/site", {"by-hand": b"x"}, BRANCH, "By a reviewer")
    follow_up = job_of(tmp_path / "elsewhere", url)
    assert follow_up.check_out().follows_up
    assert (follow_up.tree / "by-hand").read_text() == "x"
    (follow_up.tree / "a").write_text("2")
    follow_up.send("Second message")
    assert server.log("team/site", BRANCH) == ["Second message", "By a reviewer", "First message", "First"]


@pytest.mark.long
def test_job_starts_from_the_base_after_its_branch_was_merged_and_deleted(server: GitServer, job: Job) -> None:
    (job.tree / "a").write_text("1")
    job.send()
    (server.path("team/site") / "refs" / "heads" / BRANCH).unlink()
    assert not job.check_out().follows_up
    assert not (job.tree / "a").exists()


def test_unchanged_and_ignored_files_make_no_commit(server: GitServer, job: Job) -> None:
    (job.tree / "README.md").write_text("# Site\n")
    (job.tree / "empty" / "folder").mkdir(parents=True)
    assert job.commit() is None
    server.commit("team/site", {".gitignore": b"node_modules/\n"})
    job.check_out()
    (job.tree / "node_modules").mkdir()
    (job.tree / "node_modules" / "x").write_text("x")
    assert job.commit() is None


def test_checkout_removes_everything_except_the_home(job: Job, tmp_path: Path) -> None:
    (job.workspace.home / "session").write_text("session data")
    (job.tree / "left").write_text("gone")
    (job.tree / "out").symlink_to(tmp_path)
    job.check_out()
    assert sorted(each.name for each in job.tree.iterdir()) == ["README.md", "src"]
    assert (job.workspace.home / "session").read_text() == "session data"
    assert tmp_path.is_dir()


@pytest.mark.long
def test_only_one_commit_is_fetched(server: GitServer, tmp_path: Path) -> None:
    url = site(server)
    for number in range(3):
        server.commit("team/site", {"README.md": b"%d" % number})
    job = job_of(tmp_path / "job", url)
    commit = job.check_out().commit
    assert (job.workspace.git / "shallow").read_text().split() == [commit]
    (job.tree / "README.md").write_text("4")
    job.send()
    assert len(server.log("team/site", BRANCH)) == 5


@pytest.mark.long
def test_links_submodules_and_unusual_names_survive_a_commit(server: GitServer, tmp_path: Path) -> None:
    files = {
        'odd "name"\n-ä\\ \t': b"odd",
        "--option": b"no option",
        "run": (PROGRAM, b"#!/bin/sh\n"),
        "link": (LINK, b"/etc"),
        "folder": (LINK, b"real"),
        "real/file": b"x",
        "crlf.txt": b"a\r\n",
        "latin\udce9": b"latin-1",
        "sub": (SUBMODULE, b"1" * 40),
        ".gitmodules": b'[submodule "sub"]\n\tpath = sub\n\turl = https://example.com/sub.git\n',
        "big.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        ".gitattributes": b"*.bin filter=lfs diff=lfs merge=lfs -text\n",
    }
    job = job_of(tmp_path / "job", server.create("team/site", files))
    job.check_out()
    assert job.commit() is None
    before = server.read("team/site", "main")
    (job.tree / "new").write_text("x")
    (job.tree / "sub" / "inside").write_text("not ours to commit")
    job.send()
    assert server.read("team/site", BRANCH) == before | {"new": (FILE, b"x")}


def test_subject_is_short_for_a_long_or_blank_prompt(job: Job) -> None:
    for number, (prompt, subject) in enumerate(
        [
            ("word " * 40, "word " * 13 + "word…"),
            (" \n\t\n", "Change what the prompt asked for"),
            ("a\0b\x1b[31m\x07c", "ab[31mc"),
            ("# Not a comment\n", "# Not a comment"),
        ]
    ):
        (job.tree / "README.md").write_text(str(number))
        commit_id = job.commit(prompt)
        log = git(f"--git-dir={job.workspace.git}", "log", "-1", "--format=%s", str(commit_id))
        assert log.decode().strip() == subject


def test_public_repository_is_read_without_a_token(server: GitServer, tmp_path: Path) -> None:
    url = site(server)
    server.public = True
    job = job_of(tmp_path / "job", url, None)
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(TurnFailed, match="requires a token"):
        job.send()


@pytest.mark.long
def test_repeated_and_concurrent_pushes_of_a_commit_succeed_and_change_nothing(server: GitServer, job: Job) -> None:
    (job.tree / "a").write_text("1")
    commit = job.commit()
    assert commit is not None
    assert not job.is_pushed(commit)
    pushes = [threading.Thread(target=job.push, args=[commit]) for _ in range(3)]
    for each in pushes:
        each.start()
    for each in pushes:
        each.join()
    assert job.is_pushed(commit)
    job.push(commit)
    assert server.tip("team/site", BRANCH) == commit
    assert server.log("team/site", BRANCH) == ["Do it", "First"]


def test_branch_that_somebody_else_changed_is_not_overwritten(server: GitServer, job: Job) -> None:
    (job.tree / "a").write_text("1")
    theirs = server.commit("team/site", {"b": b"2"}, BRANCH)
    with pytest.raises(PushRefused, match="changed by somebody else during the turn"):
        job.send()
    assert server.tip("team/site", BRANCH) == theirs


@pytest.mark.long
def test_push_succeeds_although_its_response_is_lost(server: GitServer, job: Job) -> None:
    (job.tree / "a").write_text("1")
    server.cuts = 1
    assert job.send() == server.tip("team/site", BRANCH)


@pytest.mark.parametrize(
    ("name", "token", "ref", "reason"),
    [
        ("team/gone", TOKEN, "main", r"team/gone.git was not found \(404\): it was removed, or the token"),
        ("team/site", "a-wrong-token", "main", r"does not accept the token \(401\)"),
        ("team/site", None, "main", r"requires a token \(401\), and the project has no token"),
        ("team/site", TOKEN, "gone", "has no branch 'gone'"),
        ("team/site", TOKEN, "v1", "'v1' is a tag, and a pull request needs a base branch"),
        ("team/site", TOKEN, "1" * 40, "is a commit, and a pull request needs a base branch"),
        ("team/empty", TOKEN, "main", "the repository seems to be empty and needs a first commit"),
    ],
)
def test_failed_checkout_has_a_reason(
    server: GitServer, tmp_path: Path, name: str, token: str | None, ref: str, reason: str
) -> None:
    site(server)
    server.create("team/empty")
    tip = server.tip("team/site", "main")
    (server.path("team/site") / "refs" / "tags" / "v1").write_text(f"{tip}\n")
    job = job_of(tmp_path / "job", f"{server.url}/{name}.git", token, ref)
    with pytest.raises(TurnFailed, match=reason) as raised:
        job.check_out()
    assert "a-wrong-token" not in str(raised.value) + "".join(job.lines)


def test_push_with_a_read_only_token_names_the_missing_permission(server: GitServer, tmp_path: Path) -> None:
    server.tokens["read-token"] = "read"
    job = job_of(tmp_path / "job", site(server), "read-token")
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(TurnFailed, match=r"forbids it \(403\): the token needs permission to push to the repo"):
        job.send()


@pytest.mark.long
def test_refused_push_quotes_the_last_lines_of_the_server(server: GitServer, job: Job) -> None:
    noise = 'for i in $(seq 100); do echo "[DEBUG] looking at rule $i of the repository" >&2; done'
    (job.tree / "a").write_text("1")
    for before in ("true", noise):
        server.hook("team/site", f"{before}; echo 'GH013: Repository rule violations found' >&2; exit 1")
        with pytest.raises(PushRefused, match="GH013: Repository rule violations found; .*pre-receive hook declined"):
            job.send()
    assert any("GH013" in line for line in job.lines)
