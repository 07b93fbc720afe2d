"""From a repository to a pushed branch, with a real git server."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agent.errors import (
    ForgeUnavailable,
    InvalidConfiguration,
    ProgramTimedOut,
    PushRefused,
    RefNotFound,
    RepositoryUnreadable,
    TurnFailed,
    TurnStopped,
)
from agent.git.remote import Remote
from tests.agent.git_job import BRANCH, TOKEN, job_of, site
from tests.agent.git_server import FILE, LINK, PROGRAM, SUBMODULE, GitServer, git, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serving(tmp_path / "server") as running:
        yield running


def test_a_change_becomes_one_commit_on_the_jobs_branch(server: GitServer, tmp_path: Path) -> None:
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


def test_a_follow_up_goes_on_where_the_branch_is(server: GitServer, tmp_path: Path) -> None:
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


def test_a_branch_that_was_merged_and_deleted_starts_anew_from_the_ref(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    job.send()
    (server.path("team/site") / "refs" / "heads" / BRANCH).unlink()
    assert not job.check_out().follows_up
    assert not (job.tree / "a").exists()


def test_no_change_makes_no_commit(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "README.md").write_text("# Site\n")
    (job.tree / "empty" / "folder").mkdir(parents=True)
    assert job.commit() is None


def test_what_the_repository_ignores_is_not_committed(server: GitServer, tmp_path: Path) -> None:
    url = server.create("team/site", {".gitignore": b"node_modules/\n"})
    job = job_of(tmp_path / "job", url)
    job.check_out()
    (job.tree / "node_modules").mkdir()
    (job.tree / "node_modules" / "x").write_text("x")
    assert job.commit() is None


def test_a_fresh_check_out_keeps_the_home_and_nothing_else(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.workspace.home / "session").write_text("kept")
    (job.tree / "left").write_text("gone")
    (job.tree / "out").symlink_to(tmp_path)
    job.check_out()
    assert sorted(each.name for each in job.tree.iterdir()) == ["README.md", "src"]
    assert (job.workspace.home / "session").read_text() == "kept"
    assert tmp_path.is_dir()


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


def test_a_repository_keeps_what_is_odd_in_it(server: GitServer, tmp_path: Path) -> None:
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


def test_a_long_or_empty_prompt_makes_a_short_subject(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    for number, (prompt, subject) in enumerate(
        [
            ("word " * 40, "word " * 13 + "word…"),
            (" \n\t\n", "Change what the prompt asked for"),
            ("a\0b\x1b[31m\x07c", "ab[31mc"),
            ("# Not a comment\n", "# Not a comment"),
        ]
    ):
        (job.tree / "README.md").write_text(str(number))
        made = job.commit(prompt)
        assert git(f"--git-dir={job.workspace.git}", "log", "-1", "--format=%s", str(made)).decode().strip() == subject


def test_a_repository_without_a_token_is_read(server: GitServer, tmp_path: Path) -> None:
    url = site(server)
    server.public = True
    job = job_of(tmp_path / "job", url, None)
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(RepositoryUnreadable, match="asks for a token"):
        job.send()


def test_pushing_twice_is_pushing_once(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    commit = job.commit()
    assert commit is not None
    assert not job.is_pushed(commit)
    job.push(commit)
    assert job.is_pushed(commit)
    job.push(commit)
    assert server.log("team/site", BRANCH) == ["Do it", "First"]


def test_two_pushes_at_once_are_one(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    commit = job.commit()
    assert commit is not None
    pushes = [threading.Thread(target=job.push, args=[commit]) for _ in range(3)]
    for each in pushes:
        each.start()
    for each in pushes:
        each.join()
    assert server.tip("team/site", BRANCH) == commit


def test_a_branch_that_somebody_else_made_or_changed_is_left_alone(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    theirs = server.commit("team/site", {"b": b"2"}, BRANCH)
    with pytest.raises(PushRefused, match="changed by somebody else during the turn"):
        job.send()
    assert server.tip("team/site", BRANCH) == theirs


def test_an_answer_that_is_lost_does_not_fail_the_push(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    server.cuts = 1
    assert job.send() == server.tip("team/site", BRANCH)


@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_is_away_for_a_moment_is_asked_again(server: GitServer, tmp_path: Path, status: int) -> None:
    job = job_of(tmp_path / "job", site(server))
    server.statuses = [status]
    job.check_out()
    assert server.statuses == []


@pytest.mark.needs("git")
def test_a_host_that_stays_away_fails_the_turn(tmp_path: Path) -> None:
    with pytest.raises(ForgeUnavailable, match="127.0.0.1:9 could not be reached: .*Failed to connect"):
        job_of(tmp_path / "job", "http://127.0.0.1:9/team/site.git").check_out()


@pytest.mark.parametrize(
    ("name", "token", "ref", "error", "reason"),
    [
        (
            "team/gone",
            TOKEN,
            "main",
            RepositoryUnreadable,
            r"team/gone.git was not found \(404\): it is gone, or the token",
        ),
        ("team/site", "a-wrong-token", "main", RepositoryUnreadable, r"does not accept the token \(401\)"),
        ("team/site", None, "main", RepositoryUnreadable, r"asks for a token \(401\), and the project has none"),
        ("team/site", TOKEN, "gone", RefNotFound, "has no branch 'gone'"),
        ("team/site", TOKEN, "v1", RefNotFound, "'v1' is a tag, and a pull request needs a branch"),
        ("team/site", TOKEN, "1" * 40, RefNotFound, "is a commit, and a pull request needs a branch"),
        ("team/empty", TOKEN, "main", RefNotFound, "it looks empty, and needs a first commit"),
    ],
)
def test_what_cannot_be_checked_out_says_why(
    server: GitServer, tmp_path: Path, name: str, token: str | None, ref: str, error: type[TurnFailed], reason: str
) -> None:
    site(server)
    server.create("team/empty")
    tip = server.tip("team/site", "main")
    (server.path("team/site") / "refs" / "tags" / "v1").write_text(f"{tip}\n")
    job = job_of(tmp_path / "job", f"{server.url}/{name}.git", token, ref)
    with pytest.raises(error, match=reason) as raised:
        job.check_out()
    assert "a-wrong-token" not in str(raised.value) + "".join(job.lines)


def test_a_token_that_may_only_read_says_what_it_lacks(server: GitServer, tmp_path: Path) -> None:
    server.tokens["read-token"] = "read"
    job = job_of(tmp_path / "job", site(server), "read-token")
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(
        RepositoryUnreadable, match=r"forbids it \(403\): the token needs the right to push to the repo"
    ):
        job.send()


def test_a_push_that_is_refused_has_the_servers_words(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    server.hook("team/site", "echo 'GH013: Repository rule violations found' >&2; exit 1")
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(PushRefused, match="GH013: Repository rule violations found; .*pre-receive hook declined"):
        job.send()
    assert any("GH013" in line for line in job.lines)


def test_a_token_of_another_user_is_told_with_the_user(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    server.public, server.user = True, "robot"
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(RepositoryUnreadable, match=r"\(401\): is it right, and still valid\?"):
        job.send()
    job.remote = Remote(job.remote.url, "main", TOKEN, "somebody")
    with pytest.raises(RepositoryUnreadable, match=r"\(401\): is it somebody's, right, and still valid\?"):
        job.send()
    job.remote = Remote(job.remote.url, "main", TOKEN, "robot")
    job.send()


def test_a_hook_that_tells_a_lot_before_it_refuses_is_told_by_its_last_words(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    noise = 'for i in $(seq 100); do echo "[DEBUG] looking at rule $i of the repository" >&2; done'
    server.hook("team/site", f"{noise}; echo 'Denied push for ref x' >&2; exit 1")
    job.check_out()
    (job.tree / "a").write_text("1")
    with pytest.raises(PushRefused, match="Denied push for ref x; .*pre-receive hook declined"):
        job.send()


def test_a_server_that_is_silent_costs_no_more_than_the_limit(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    job.check_out()
    (job.tree / "a").write_text("1")
    release = threading.Event()
    server.on_request = partial(release.wait, 30)
    made = job.commit()
    assert made is not None
    job.options = {"limit_s": 1}
    with pytest.raises(ProgramTimedOut, match="git push did not end within the step's time limit"):
        job.push(made)
    release.set()


def test_a_stop_ends_it(server: GitServer, tmp_path: Path) -> None:
    job = job_of(tmp_path / "job", site(server))
    release, asked = threading.Event(), threading.Event()

    def keep_waiting() -> None:
        asked.set()
        release.wait(30)

    server.on_request = keep_waiting
    job.options = {"is_stopped": asked.is_set}
    with pytest.raises(TurnStopped):
        job.check_out()
    release.set()


@pytest.mark.parametrize("user", ["", "a b", "a:b", "a@b", "a/b", "-a", "a\n", "%"])
def test_what_is_no_name_of_a_user_is_refused(user: str) -> None:
    with pytest.raises(InvalidConfiguration):
        Remote("https://example.com/a.git", "main", None, user)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@example.com/a.git",
        "https://secret@example.com/a.git",
        "ssh://git@example.com/a.git",
        "git@example.com:a.git",
        "file:///etc",
        "/etc",
        "ext::sh -c id",
        "https://example.com",
        "https://example.com/a b",
        "https://example.com/a?token=secret",
        "https://example.com/a\n",
        "--upload-pack=id",
        "",
    ],
)
def test_what_is_no_url_of_a_repository_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        Remote(url, "main", None)
    assert "secret" not in str(raised.value).replace("token=secret", "")


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "-x",
        "--upload-pack=id",
        "a..b",
        "a b",
        "a:b",
        "a^",
        "a~1",
        "a*",
        "a\n",
        "/a",
        "a/",
        "a.lock",
        "@{u}",
        "a\\b",
    ],
)
def test_what_is_no_name_of_a_branch_is_refused(ref: str) -> None:
    with pytest.raises(InvalidConfiguration):
        Remote("https://example.com/a.git", ref, None)
