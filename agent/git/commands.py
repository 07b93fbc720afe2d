"""One git command that trusts nothing but us: no hook, no configuration and no credential that is not given here."""

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent import process, retry
from agent.errors import (
    ForgeUnavailable,
    GitFailed,
    ProgramTimedOut,
    PushRefused,
    RepositoryUnreadable,
    TurnFailed,
    WorkspaceUnusable,
)
from agent.git.remote import USERNAME, Remote
from agent.process import Stream

PATH = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT = {
    "PATH": PATH,
    "HOME": "/dev/null",  # curl looks for ~/.netrc, and without HOME asks the password file where home is
    "LC_ALL": "C",  # its messages are read below
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "http:https",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_AUTHOR_NAME": "Readership",
    "GIT_AUTHOR_EMAIL": "noreply@readership.invalid",
    "GIT_COMMITTER_NAME": "Readership",
    "GIT_COMMITTER_EMAIL": "noreply@readership.invalid",
}
CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.protectHFS=true",  # a name that is .git on a Mac or on Windows goes no further
    "core.protectNTFS=true",
    "core.quotePath=false",
    "core.fsync=committed",  # a commit that the queue knows of survives power loss
    "core.fsyncMethod=batch",
    "credential.helper=",
    "http.followRedirects=initial",
    "http.sslVerify=true",
    "submodule.recurse=false",
    "gc.auto=0",
    "pack.threads=2",  # each takes its own share of MEMORY_BYTES
    "pack.windowMemory=128m",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "init.defaultBranch=main",
)
MEMORY_BYTES = 2 * 1024**3
"""Memory limit of each git process, in bytes. A hostile repository or work tree can make git need any amount."""
LIMITED = ("prlimit", f"--data={MEMORY_BYTES}", "--core=0", "--")
"""RLIMIT_DATA rather than RLIMIT_AS: git maps packs into its address space, which costs no memory."""
TEXT_CHARS_MAX = 64 * 1024
"""Characters of a command's messages that are logged; a server may send them without end."""
MESSAGES_BYTES_MAX = 8 * TEXT_CHARS_MAX
"""Bytes of messages in memory: twice what TEXT_CHARS_MAX can take, so that no part of a cut token is in the text."""
ANSWER_BYTES_MAX = 1024 * 1024
"""Maximum size of a command's standard output that is not streamed, in bytes."""
NOT_FOUND_BY_SHELL = 127

OnLine = Callable[[str], None]
OnPiece = Callable[[bytes], None]
Failure = tuple[str, type[TurnFailed], str]

UNREACHABLE = (
    r"returned error: (?:429|5\d\d)|Could not resolve|Failed to connect|Couldn't connect|Connection (?:refused|reset)"
    r"|timed out|early EOF|unexpected disconnect|RPC failed|Empty reply|hung up"
)
FAILURES: tuple[Failure, ...] = (
    (
        r"(?m)^(?:fatal|error): .*(?:[Oo]ut of memory|Cannot allocate memory)",
        WorkspaceUnusable,
        f"git needs more than {MEMORY_BYTES // 1024**3} GiB of memory for this repository or work tree: {{words}}",
    ),
    (r"No space left on device|[Dd]isk quota exceeded", WorkspaceUnusable, "the disk is full: {words}"),
    (r"repository '[^']*' not found", RepositoryUnreadable, "{url} was not found (404): {gone}"),
    (
        r"Authentication failed",
        RepositoryUnreadable,
        "{host} does not accept the token (401): is it {whose}right, and still valid?",
    ),
    (r"could not read Password", GitFailed, "the token could not be handed to git: {words}"),
    (r"askpass response", RepositoryUnreadable, "{url} leads to another host, which is not given the token: {words}"),
    (r"could not read Username", RepositoryUnreadable, "{url} asks for a token (401), and the project has none"),
    (
        r"returned error: 403",
        RepositoryUnreadable,
        "{host} forbids it (403): the token needs the right to {right}. {words}",
    ),
    (r"returned error: 404", RepositoryUnreadable, "{url} was not found (404): {gone}"),
    (r"not valid: is this a git repository", RepositoryUnreadable, "no git repository answers at {url}"),
    (r"update url base from redirection", RepositoryUnreadable, "{url} leads somewhere else: {words}"),
    (
        r"(?i)SSL certificate|server certificate|certificate verif",
        RepositoryUnreadable,
        "the certificate of {host} is not trusted on this machine: {words}",
    ),
    (r"cannot lock ref|failed to update ref|reference already exists", ForgeUnavailable, "{host}: {words}"),
    (r"\[(?:remote )?rejected\]", PushRefused, "{host} refused the branch: {words}"),
    (UNREACHABLE, ForgeUnavailable, "{host} could not be reached: {words}"),
)
"""What git says, the error it is, and what the owner of the project reads. The first that fits counts."""


@dataclass(frozen=True, slots=True)
class Git:
    """git for one step of one job. All of the step's commands must end before `deadline` of the monotonic clock."""

    folder: Path
    remote: Remote | None
    deadline: float
    is_stopped: Callable[[], bool]
    on_line: OnLine

    def run_local(self, *arguments: str, stdin: str | None = None, **environ: str) -> str:
        """A command on the work tree; returns what it writes, without the last newline.

        Raises:
            TurnFailed: it failed, and the message says why.
        """
        return self.run_program("git", *self._options(), *arguments, stdin=stdin, environ=environ)

    def stream_local(self, on_piece: OnPiece, *arguments: str) -> None:
        """Run a command on the work tree and hand on what it writes, as it comes. What `on_piece` raises ends it.

        Raises:
            TurnFailed: the command failed, and the message says why.
        """
        self.run_program("git", *self._options(), *arguments, environ={}, on_piece=on_piece)

    def run_remote(self, *arguments: str) -> str:
        """A command that speaks to the repository's host, thrice if it does not answer.

        Raises:
            TurnFailed: it failed, and the message says why.
        """
        assert self.remote is not None
        with self.remote.asking() as environ:
            argv = ("git", *self._options(), *arguments)
            return retry.forge_request(lambda: self.run_program(*argv, environ=environ), self.is_stopped)

    def run_program(
        self, *argv: str, environ: dict[str, str], stdin: str | None = None, on_piece: OnPiece | None = None
    ) -> str:
        """A program in the job's folder. What it says beside its answer goes to the job's log, without the token.

        Raises:
            TurnFailed: it failed, and the message says why.
        """
        written = _Written(self._name(argv), on_piece)
        try:
            status = process.run(
                (*LIMITED, *argv),
                cwd=self.folder,
                env=ENVIRONMENT | environ,
                limit_s=max(0.0, self.deadline - time.monotonic()),
                is_stopped=self.is_stopped,
                on_output=written.take,
                stdin=None if stdin is None else stdin.encode(),
            )
        except ProgramTimedOut:
            raise ProgramTimedOut(f"{self._name(argv)} did not end within the step's time limit") from None
        words = self._clean(written.messages)
        for line in words.splitlines():
            self.on_line(line)
        if status != 0:
            raise self._failure(argv, status, words + "\n" + self._clean(written.answer))
        return written.answer.decode(errors="surrogateescape").removesuffix("\n")

    def _options(self) -> list[str]:
        configured = [part for each in CONFIG for part in ("-c", each)]
        return [*configured, f"--git-dir={self.folder / 'git'}", f"--work-tree={self.folder / 'tree'}"]

    def _clean(self, said: bytearray) -> str:
        text = said.decode(errors="replace")
        if self.remote is not None:
            text = self.remote.clean(text)
        return "".join(each if each.isprintable() or each in "\n\t" else "?" for each in text[-TEXT_CHARS_MAX:])

    def _name(self, argv: tuple[str, ...]) -> str:
        """`git push`, of all the options before it."""
        return " ".join(("git", argv[len(self._options()) + 1])) if argv[0] == "git" else argv[0]

    def _failure(self, argv: tuple[str, ...], status: int, text: str) -> TurnFailed:
        """The error of a command that failed."""
        name = self._name(argv)
        if status == NOT_FOUND_BY_SHELL:
            return GitFailed(f"{argv[0]} is not installed where the worker runs")
        told = {
            "url": self.remote.url if self.remote else "",
            "host": self.remote.host if self.remote else "",
            "gone": "it is gone, or the token may not see it"
            if self.remote and self.remote.token
            else "is it private?",
            "whose": f"{self.remote.user}'s, " if self.remote and self.remote.user != USERNAME else "",
            "right": "push to the repository" if name == "git push" else "read the repository",
            "words": _words(text),
        }
        for pattern, error, reason in FAILURES:
            if re.search(pattern, text):
                return error(reason.format_map(told))
        how = status if status > 0 else signal.Signals(-status).name
        return GitFailed(f"{name} failed ({how}): {told['words']}")


@dataclass(slots=True)
class _Written:
    """What a program writes: the end of its messages, and its answer unless `on_piece` takes that."""

    name: str
    on_piece: OnPiece | None
    messages: bytearray = field(default_factory=bytearray)
    answer: bytearray = field(default_factory=bytearray)

    def take(self, stream: Stream, piece: bytes) -> None:
        """Raises GitFailed for an answer that is too long."""
        if stream == "stderr":
            self.messages += piece
            del self.messages[:-MESSAGES_BYTES_MAX]
        elif self.on_piece is not None:
            self.on_piece(piece)
        else:
            self.answer += piece
            if len(self.answer) > ANSWER_BYTES_MAX:
                raise GitFailed(f"{self.name} answered more than {ANSWER_BYTES_MAX // 1024**2} MiB")


def _words(text: str) -> str:
    """The lines that say what went wrong: the server's own and git's, not its advice.

    The last of them: a hook that tells all that it does says at the end why it refuses.
    """
    telling = re.findall(r"(?m)^(?:remote:|fatal:|error:|!)\s*(.*\S)", text)
    rejected = [line.split("\t")[-1] for line in telling]
    return "; ".join(dict.fromkeys(rejected))[-1000:] or text.strip()[-1000:] or "it said nothing"
