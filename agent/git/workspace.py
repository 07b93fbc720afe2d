"""Folder of a job: checkout, commit and push.

`git` is the git directory, which the coding agent never sees; `tree` is the work tree; `home` is the agent's home.
Everything that the agent leaves in `tree` is data: no file in it configures git or is executed by it.
"""

import re
import secrets
import subprocess
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agent.errors import ForgeUnavailable, PushRefused, TurnFailed
from agent.git import changed_files
from agent.git.commands import ENVIRONMENT, Git, StepControl
from agent.git.remote import Remote
from agent.process import DIE_WITH_PARENT

SUBJECT_CHARS_MAX = 72
NO_SUBJECT = "Change what the prompt asked for"
COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of a job's folder. The lease of the turn ensures that only one process at a time works in it."""

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
        """File with the random id of `home`. A session is continued only in the home that it was started in."""
        return self.folder / ".home"

    @property
    def mark(self) -> Path:
        """File with the mark of the turn whose files are in `git` and `tree`; see `CheckOutStep`."""
        return self.folder / ".turn"


@dataclass(frozen=True, slots=True)
class Checkout:
    """Result of `check_out`. `follows_up` is true for the job's own branch, false for the base branch."""

    commit: str
    follows_up: bool


def check_out(workspace: Workspace, remote: Remote, branch: str, control: StepControl) -> Checkout:
    """Create a fresh work tree of the job's branch, or of the base branch before the first push. Do not change `home`.

    Fetch one commit without its history: the agent sees no git directory, and git can push from a shallow clone.

    Raises:
        TurnFailed: a step failed; the message has the reason.
    """
    git = _git(workspace, remote, control)
    _reset(workspace, git)
    refs = _remote_refs(git, remote, branch)
    follows_up = f"refs/heads/{branch}" in refs
    name = branch if follows_up else _base_branch(remote, refs)
    tracking = f"refs/remotes/origin/{name}"
    git.run_local("init", "--quiet", "--template=")
    git.run_remote(
        *("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"),
        *("--", remote.url, f"+refs/heads/{name}:{tracking}"),
    )
    git.run_local("checkout", "--quiet", "--force", "--detach", "--no-recurse-submodules", tracking)
    return Checkout(git.run_local("rev-parse", "--verify", "HEAD"), follows_up)


def commit(
    workspace: Workspace, prompt: str, at: datetime, control: StepControl, *, allow_ci: bool = False
) -> str | None:
    """Commit all changes of the work tree. Return the commit id, or None if nothing was changed.

    Without `allow_ci`, a change of CI configuration is refused. The same changes, prompt and time result in the same
    commit id, so the step can be repeated after a crash.

    Raises:
        TurnFailed: a step failed; the message has the reason.
    """
    git = _git(workspace, None, control)
    _disarm(workspace, git)
    changed_files.refuse_large(git, workspace.tree)
    git.run_local("add", "--all")
    tree = git.run_local("write-tree")
    if tree == git.run_local("rev-parse", "--verify", "HEAD^{tree}"):
        return None
    if not allow_ci:
        changed_files.refuse_ci(git, workspace.tree, tree)
    date = f"{int(at.timestamp())} +0000"
    return git.run_local(
        *("commit-tree", "--no-gpg-sign", "-p", "HEAD", "-F", "-", tree),
        stdin=subject(prompt),
        GIT_AUTHOR_DATE=date,
        GIT_COMMITTER_DATE=date,
    )


def push(workspace: Workspace, remote: Remote, branch: str, commit_id: str, control: StepControl) -> None:
    """Push the commit to the forge's branch. Succeed if the branch is at this commit already.

    Raises:
        PushRefused: the forge refused the push, or the branch was changed after the checkout.
        TurnFailed: a step failed; the message has the reason.
    """
    git = _git(workspace, remote, control)
    known_id = git.run_local("for-each-ref", "--format=%(objectname)", f"refs/remotes/origin/{branch}")
    try:
        git.run_remote(
            *("push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"),
            *(
                f"--force-with-lease=refs/heads/{branch}:{known_id}",
                "--",
                remote.url,
                f"{commit_id}:refs/heads/{branch}",
            ),
        )
    except (PushRefused, ForgeUnavailable) as error:
        if _remote_refs(git, remote, branch).get(f"refs/heads/{branch}") == commit_id:
            return  # the response was lost, or an earlier attempt pushed the same commit
        if "stale info" in str(error):
            raise PushRefused(
                f"the branch {branch} was changed by somebody else during the turn, and was not overwritten: "
                "send the message again to work on the changed branch"
            ) from None
        raise


def is_pushed(workspace: Workspace, remote: Remote, branch: str, commit_id: str, control: StepControl) -> bool:
    """Return whether the forge's branch is at the commit. Needs no work tree. Raises TurnFailed without an answer."""
    _make_folders(workspace)
    return _remote_refs(_git(workspace, remote, control), remote, branch).get(f"refs/heads/{branch}") == commit_id


def remove_checkout(workspace: Workspace) -> None:
    """Remove the files of a turn, but not its agent's home. A turn that is repeated then begins with a check-out."""
    workspace.mark.unlink(missing_ok=True)  # first: it proves that the files are complete
    discard(workspace.git)
    discard(workspace.tree)


def remove_all(workspace: Workspace) -> None:
    """Remove the files of a turn and the home of its agent, whose next session gets the job's earlier prompts."""
    remove_checkout(workspace)
    workspace.home_id.unlink(missing_ok=True)  # first: it proves that the home is complete
    discard(workspace.home)


def discard(folder: Path) -> None:
    """Remove a folder as far as possible.

    Use `rm`, because an agent may nest folders more deeply than Python's recursion limit.
    """
    if folder.is_symlink():  # `chmod` would follow it
        folder.unlink()
    for program in (("chmod", "-R", "u+rwX"), ("rm", "-rf")):
        argv = (*DIE_WITH_PARENT, *program, "--", str(folder))  # a later worker may use the folder
        subprocess.run(argv, env=ENVIRONMENT, capture_output=True, check=False)  # noqa: S603  # the folder is ours


def _git(workspace: Workspace, remote: Remote | None, control: StepControl) -> Git:
    return Git(workspace.folder, remote, time.monotonic() + control.limit_s, control.is_stopped, control.on_line)


def _reset(workspace: Workspace, git: Git) -> None:
    _make_folders(workspace)
    git.run_program("chmod", "-R", "u+rwX", "--", "git", "tree", environ={})  # undo a chmod of the agent
    git.run_program("find", "git", "tree", "-mindepth", "1", "-delete", environ={})
    if not (workspace.home.is_dir() and workspace.home_id.is_file()):
        workspace.home_id.write_text(secrets.token_hex(8))  # before the home: a new home never has the id of an old one
        workspace.home.mkdir(mode=0o700, exist_ok=True)
    git.run_program("chmod", "-R", "u+rwX", "--", "home", environ={})


def _make_folders(workspace: Workspace) -> None:
    try:
        for each in (workspace.folder, workspace.git, workspace.tree):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise TurnFailed(f"the job's folder cannot be created: {error.strerror}") from None
    if workspace.tree.is_symlink():
        raise TurnFailed("the work tree is a symbolic link")


def _remote_refs(git: Git, remote: Remote, branch: str) -> dict[str, str]:
    """Return the commit id of each existing ref, by its name: the job's branch, and the refs that `ref` may name."""
    names = [f"refs/heads/{branch}", f"refs/heads/{remote.base}", f"refs/tags/{remote.base}", "HEAD"]
    lines = git.run_remote("ls-remote", "--quiet", "--", remote.url, *names).splitlines()
    return {name: commit_id for commit_id, name in (line.split("\t", 1) for line in lines)}


def _base_branch(remote: Remote, refs: dict[str, str]) -> str:
    """Return the short name of the base branch. Raises TurnFailed if the base is not a branch."""
    if f"refs/heads/{remote.base}" in refs:
        return remote.base
    if not refs:
        raise TurnFailed(
            f"{remote.url} has no branch {remote.base!r}: the repository seems to be empty and needs a first commit"
        )
    if f"refs/tags/{remote.base}" in refs or COMMIT_ID.fullmatch(remote.base):
        kind = "commit" if COMMIT_ID.fullmatch(remote.base) else "tag"
        raise TurnFailed(
            f"{remote.base!r} is a {kind}, and a pull request needs a base branch: set the ref to a branch"
        )
    raise TurnFailed(f"{remote.url} has no branch {remote.base!r}")


def _disarm(workspace: Workspace, git: Git) -> None:
    """Remove nested git repositories, pipes, sockets and devices from the work tree before git reads it."""
    if workspace.tree.is_symlink() or not workspace.tree.is_dir():
        raise TurnFailed("the work tree is gone")
    (workspace.git / "index.lock").unlink(missing_ok=True)  # left by a worker that was killed
    git.run_program("chmod", "-R", "u+rwX", "--", "tree", environ={})
    unwanted = ("(", "-iname", ".git", "-o", "!", "(", "-type", "f", "-o", "-type", "d", "-o", "-type", "l", ")", ")")
    git.run_program(
        *("find", "tree", "-mindepth", "1", *unwanted, "-prune", "-execdir", "rm", "-rf", "--", "{}", "+"), environ={}
    )


def subject(prompt: str) -> str:
    """Return the first line of the prompt that is not blank, cut at a word to SUBJECT_CHARS_MAX characters."""
    lines = (" ".join(line.split()) for line in prompt.splitlines())
    line = "".join(char for char in next(filter(None, lines), NO_SUBJECT) if char.isprintable()) or NO_SUBJECT
    if len(line) <= SUBJECT_CHARS_MAX:
        return line
    return line[: SUBJECT_CHARS_MAX - 1].rsplit(" ", 1)[0] + "…"
