"""The folder of one job: `git`, which the coding agent never sees, `tree`, which it works in, and `home`, its own.

Whatever the agent leaves in `tree` is data: no file of it configures or starts anything here.
"""

import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent.errors import ForgeUnavailable, PushRefused, RefNotFound, WorkspaceUnusable
from agent.git.commands import ENVIRONMENT, Git, OnLine
from agent.git.remote import Remote

FILE_BYTES_MAX = 100 * 1024 * 1024
"""GitHub takes no larger file: https://docs.github.com/en/repositories/working-with-files/managing-large-files"""
CHANGED_MAX = 100_000
CHANGED_NAMES_BYTES_MAX = 32 * 1024 * 1024
"""Files of one commit, and bytes of their names: git takes memory and time for each."""
SUBJECT_CHARS_MAX = 72
NO_SUBJECT = "Change what the prompt asked for"
COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

IsStopped = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Workspace:
    """No two processes work in one folder at a time: the queue's lease sees to that."""

    folder: Path

    @property
    def git(self) -> Path:
        return self.folder / "git"

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def home_id(self) -> Path:
        """A word that no other home has, here or on another machine: the sessions in it are known by it."""
        return self.folder / ".home"


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """`follows_up`: it is the job's own branch, and not the ref that the first turn starts from."""

    commit: str
    follows_up: bool


def check_out(
    workspace: Workspace, remote: Remote, branch: str, *, limit_s: float, is_stopped: IsStopped, on_line: OnLine
) -> CheckedOut:
    """A fresh work tree: of the job's branch if the host has it, else of the ref. `home` stays as it is.

    Without the history: the agent sees no git directory, and a push from one commit works.

    Raises:
        TurnFailed: it cannot be, and the message says why.
    """
    git = Git(workspace.folder, remote, time.monotonic() + limit_s, is_stopped, on_line)
    _make_anew(workspace, git)
    refs = _refs_of(git, remote, branch)
    follows_up = f"refs/heads/{branch}" in refs
    name = branch if follows_up else _base_of(remote, refs)
    tracking = f"refs/remotes/origin/{name}"
    git.run_local("init", "--quiet", "--template=")
    git.run_remote(
        *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"),
        *("--", remote.url, f"+refs/heads/{name}:{tracking}"),
    )
    git.run_local("checkout", "--quiet", "--force", "--detach", "--no-recurse-submodules", tracking)
    return CheckedOut(git.run_local("rev-parse", "--verify", "HEAD"), follows_up)


def commit(
    workspace: Workspace, prompt: str, at: datetime, *, limit_s: float, is_stopped: IsStopped, on_line: OnLine
) -> str | None:
    """All that changed in the work tree as one commit on what was checked out; None if nothing did.

    The same changes, prompt and time make the same commit, so that it may be made again after a crash.

    Raises:
        TurnFailed: it cannot be, and the message says why.
    """
    git = Git(workspace.folder, None, time.monotonic() + limit_s, is_stopped, on_line)
    _disarm(workspace, git)
    _refuse_large_files(workspace, git)
    git.run_local("add", "--all")
    tree = git.run_local("write-tree")
    if tree == git.run_local("rev-parse", "--verify", "HEAD^{tree}"):
        return None
    date = f"{int(at.timestamp())} +0000"
    return git.run_local(
        *("commit-tree", "--no-gpg-sign", "-p", "HEAD", "-F", "-", tree),
        stdin=subject(prompt),
        GIT_AUTHOR_DATE=date,
        GIT_COMMITTER_DATE=date,
    )


def push(
    workspace: Workspace,
    remote: Remote,
    branch: str,
    commit_id: str,
    *,
    limit_s: float,
    is_stopped: IsStopped,
    on_line: OnLine,
) -> None:
    """The host's branch is at the commit when this returns; fine if it was before.

    Raises:
        PushRefused: the host says no, or the branch is not what it was when it was checked out.
        TurnFailed: it cannot be, and the message says why.
    """
    git = Git(workspace.folder, remote, time.monotonic() + limit_s, is_stopped, on_line)
    found = git.run_local("for-each-ref", "--format=%(objectname)", f"refs/remotes/origin/{branch}")
    try:
        git.run_remote(
            *("push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"),
            *(f"--force-with-lease=refs/heads/{branch}:{found}", "--", remote.url, f"{commit_id}:refs/heads/{branch}"),
        )
    except (PushRefused, ForgeUnavailable) as error:
        if _refs_of(git, remote, branch).get(f"refs/heads/{branch}") == commit_id:
            return  # the answer was lost, or another push of the same was first
        if "stale info" in str(error):
            raise PushRefused(
                f"the branch {branch} was changed by somebody else during the turn, and is left as it is: "
                "send the message again to work on what is there now"
            ) from None
        raise


def is_pushed(
    workspace: Workspace,
    remote: Remote,
    branch: str,
    commit_id: str,
    *,
    limit_s: float,
    is_stopped: IsStopped,
    on_line: OnLine,
) -> bool:
    """Whether the host's branch is at the commit. Needs no work tree.

    Raises:
        TurnFailed: it cannot be told, and the message says why.
    """
    _make_folders(workspace)
    git = Git(workspace.folder, remote, time.monotonic() + limit_s, is_stopped, on_line)
    return _refs_of(git, remote, branch).get(f"refs/heads/{branch}") == commit_id


def discard(folder: Path) -> None:
    """Remove a job's folder, as far as that goes. By programs: an agent may nest folders deeper than Python follows."""
    for argv in (("chmod", "-R", "u+rwX", "--", str(folder)), ("rm", "-rf", "--", str(folder))):
        subprocess.run(argv, env=ENVIRONMENT, capture_output=True, check=False)  # noqa: S603  # the folder is ours


def _make_anew(workspace: Workspace, git: Git) -> None:
    _make_folders(workspace)
    if _holds(workspace.git) or _holds(workspace.tree):
        git.run_program("chmod", "-R", "u+rwX", "--", "git", "tree", environ={})  # an agent may shut its folders
        git.run_program("find", "git", "tree", "-mindepth", "1", "-delete", environ={})
    if not (workspace.home.is_dir() and workspace.home_id.is_file()):
        workspace.home_id.write_text(secrets.token_hex(8))  # first: a home never has the mark of one before it
        workspace.home.mkdir(mode=0o700, exist_ok=True)


def _holds(folder: Path) -> bool:
    """Anything, or what cannot be told."""
    try:
        return any(folder.iterdir())
    except PermissionError:
        return True


def _make_folders(workspace: Workspace) -> None:
    try:
        for each in (workspace.folder, workspace.git, workspace.tree):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise WorkspaceUnusable(f"the job's folder cannot be made: {error.strerror}") from None
    if workspace.tree.is_symlink():
        raise WorkspaceUnusable("the work tree is a link to somewhere else")


def _refs_of(git: Git, remote: Remote, branch: str) -> dict[str, str]:
    """The commits of the job's branch, and of all that the ref may be, as far as the host has them."""
    asked = [f"refs/heads/{branch}", f"refs/heads/{remote.base}", f"refs/tags/{remote.base}", "HEAD"]
    lines = git.run_remote("ls-remote", "--quiet", "--", remote.url, *asked).splitlines()
    return {name: commit_id for commit_id, name in (line.split("\t", 1) for line in lines)}


def _base_of(remote: Remote, refs: dict[str, str]) -> str:
    """The base branch, which a pull request needs."""
    if f"refs/heads/{remote.base}" in refs:
        return remote.base
    if not refs:
        raise RefNotFound(f"{remote.url} has no branch {remote.base!r}; it looks empty, and needs a first commit")
    if f"refs/tags/{remote.base}" in refs or COMMIT_ID.fullmatch(remote.base):
        kind = "commit" if COMMIT_ID.fullmatch(remote.base) else "tag"
        raise RefNotFound(
            f"{remote.base!r} is a {kind}, and a pull request needs a branch to go to: set the ref to one"
        )
    raise RefNotFound(f"{remote.url} has no branch {remote.base!r}")


def _disarm(workspace: Workspace, git: Git) -> None:
    """Take from the work tree what git must not meet: repositories of the agent's own, pipes, sockets and devices."""
    if workspace.tree.is_symlink() or not workspace.tree.is_dir():
        raise WorkspaceUnusable("the work tree is gone")
    (workspace.git / "index.lock").unlink(missing_ok=True)  # of a worker that was killed
    git.run_program("chmod", "-R", "u+rwX", "--", "tree", environ={})
    odd = ("(", "-iname", ".git", "-o", "!", "(", "-type", "f", "-o", "-type", "d", "-o", "-type", "l", ")", ")")
    git.run_program(
        *("find", "tree", "-mindepth", "1", *odd, "-prune", "-execdir", "rm", "-rf", "--", "{}", "+"), environ={}
    )


def _refuse_large_files(workspace: Workspace, git: Git) -> None:
    """Before git reads them: a file with holes costs an agent nothing, and us hours.

    Raises:
        WorkspaceUnusable: a file that changed is too large, or too many did.
    """
    changed = _Changed(os.fsencode(workspace.tree))
    git.stream_local(changed.take, "ls-files", "-z", "--others", "--modified", "--exclude-standard", "--deduplicate")


@dataclass(slots=True)
class _Changed:
    """The names of the files that changed, each checked as it comes and then forgotten."""

    tree: bytes
    _begun: bytes = b""
    _count: int = 0
    _bytes: int = 0

    def take(self, piece: bytes) -> None:
        """Check the names that end in the piece. Raises WorkspaceUnusable."""
        *names, self._begun = (self._begun + piece).split(b"\0")
        self._count += len(names)
        self._bytes += len(piece)
        if self._count > CHANGED_MAX or self._bytes > CHANGED_NAMES_BYTES_MAX:
            raise WorkspaceUnusable(
                f"the agent changed more than {CHANGED_MAX} files, or their names have more than "
                f"{CHANGED_NAMES_BYTES_MAX // 1024**2} MiB: too many to commit; does .gitignore lack a folder?"
            )
        for name in names:
            self._check(name)

    def _check(self, name: bytes) -> None:
        try:
            size = os.lstat(os.path.join(self.tree, name)).st_size  # noqa: PTH118  # no Path takes bytes
        except OSError:
            return  # deleted, or below what is no folder any more: git add sees it the same way
        if size > FILE_BYTES_MAX:
            raise WorkspaceUnusable(
                f"the agent left {os.fsdecode(name)!r} of {size / 1024**2:.0f} MiB: "
                f"files over {FILE_BYTES_MAX // 1024**2} MiB are not committed"
            )


def subject(prompt: str) -> str:
    """The prompt's first line that says something, cut at a word."""
    lines = (" ".join(line.split()) for line in prompt.splitlines())
    line = "".join(each for each in next(filter(None, lines), NO_SUBJECT) if each.isprintable()) or NO_SUBJECT
    if len(line) <= SUBJECT_CHARS_MAX:
        return line
    return line[: SUBJECT_CHARS_MAX - 1].rsplit(" ", 1)[0] + "…"
