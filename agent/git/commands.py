"""git commands without hooks, configuration files or credentials of the machine."""

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent import process, retry
from agent.errors import ForgeUnavailable, ProgramTimedOut, PushRefused, TurnFailed
from agent.git.remote import Remote
from agent.process import Stream

PATH = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT = {
    "PATH": PATH,
    "HOME": "/dev/null",  # curl reads ~/.netrc, and without HOME looks the home up in /etc/passwd
    "LC_ALL": "C",  # FAILURES matches the English messages
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
    "core.protectHFS=true",  # refuse names that are .git on macOS or Windows
    "core.protectNTFS=true",
    "core.quotePath=false",
    "core.fsync=committed",  # a commit that is recorded in the queue survives a power loss
    "core.fsyncMethod=batch",
    "credential.helper=",
    "http.followRedirects=initial",
    "http.sslVerify=true",
    "submodule.recurse=false",
    "gc.auto=0",
    "pack.threads=2",  # each thread uses its own part of MEMORY_BYTES
    "pack.windowMemory=128m",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "init.defaultBranch=main",
)
MEMORY_BYTES = 2 * 1024**3
"""Memory limit of each git process, in bytes. A hostile repository or work tree can make git need any amount."""
LIMITED = ("prlimit", f"--data={MEMORY_BYTES}", "--core=0", "--")
"""Prefix of a command line. RLIMIT_DATA instead of RLIMIT_AS, because git maps whole packs into its address space."""
TEXT_CHARS_MAX = 64 * 1024
"""Maximum number of logged characters of a command's standard error. A server may send text without end."""
STDERR_BYTES_MAX = 8 * TEXT_CHARS_MAX
"""Maximum size of a command's standard error in memory, in bytes. It is twice the maximum size of the logged
TEXT_CHARS_MAX characters: a token whose beginning was dropped, and which cannot be redacted, is never logged."""
STDOUT_BYTES_MAX = 1024 * 1024
"""Maximum size of a command's standard output that is not streamed, in bytes."""
NOT_FOUND_BY_SHELL = 127

OnLine = Callable[[str], None]
OnChunk = Callable[[bytes], None]

OUT_OF_MEMORY = r"(?m)^(?:fatal|error): .*(?:[Oo]ut of memory|Cannot allocate memory)"
UNTRUSTED = r"(?i)SSL certificate|server certificate|certificate verif"
UNREACHABLE = (
    r"returned error: (?:429|5\d\d)|Could not resolve|Failed to connect|Couldn't connect|Connection (?:refused|reset)"
    r"|timed out|early EOF|unexpected disconnect|RPC failed|Empty reply|hung up"
)
FAILURES: tuple[tuple[type[TurnFailed], dict[str, str]], ...] = (
    (
        TurnFailed,
        {
            OUT_OF_MEMORY: "git needs more than {memory} of memory for this repository or work tree: {details}",
            r"No space left on device|[Dd]isk quota exceeded": "the disk is full: {details}",
            r"repository '[^']*' not found": "{url} was not found (404): {hint}",
            r"Authentication failed": "{host} does not accept the token (401): is it correct, and still valid?",
            r"could not read Password": "git could not read the token: {details}",
            r"askpass response": "{url} redirects to another host, and the token is not sent there: {details}",
            r"could not read Username": "{url} requires a token (401), and the project has no token",
            r"returned error: 403": "{host} forbids it (403): the token needs permission to {permission}. {details}",
            r"returned error: 404": "{url} was not found (404): {hint}",
            r"not valid: is this a git repository": "there is no git repository at {url}",
            r"update url base from redirection": "{url} redirects to another place: {details}",
            UNTRUSTED: "the certificate of {host} is not trusted on this machine: {details}",
        },
    ),
    (ForgeUnavailable, {r"cannot lock ref|failed to update ref|reference already exists": "{host}: {details}"}),
    (PushRefused, {r"\[(?:remote )?rejected\]": "{host} refused the branch: {details}"}),
    (ForgeUnavailable, {UNREACHABLE: "{host} could not be reached: {details}"}),
)
"""Messages for the project's owner, by error class and pattern in git's output. The first match wins."""


@dataclass(frozen=True, slots=True)
class StepControl:
    """Time limit of a step of a job, in seconds; the function that stops it; and the receiver of git's messages."""

    limit_s: float
    is_stopped: Callable[[], bool]
    on_line: OnLine


@dataclass(frozen=True, slots=True)
class Git:
    """The git commands of one step of a job. All of them must end before `deadline`, a time of `time.monotonic`."""

    folder: Path
    remote: Remote | None
    deadline: float
    is_stopped: Callable[[], bool]
    on_line: OnLine

    def run_local(self, *arguments: str, stdin: str | None = None, **environ: str) -> str:
        """Run a command on the work tree. Return its standard output without the last newline. Raises TurnFailed."""
        return self.run_program("git", *self._options(), *arguments, stdin=stdin, environ=environ)

    def stream_names(self, on_name: Callable[[bytes], None], *arguments: str) -> None:
        """Run a command on the work tree and call `on_name` with each of the NUL-separated names that it prints.

        An exception of `on_name` ends the command.

        Raises:
            TurnFailed: the command failed; the message has the reason.
        """
        incomplete = b""

        def on_chunk(chunk: bytes) -> None:
            nonlocal incomplete
            *names, incomplete = (incomplete + chunk).split(b"\0")
            for name in names:
                on_name(name)

        self.run_program("git", *self._options(), *arguments, environ={}, on_chunk=on_chunk)

    def run_remote(self, *arguments: str) -> str:
        """Run a command that connects to the forge. Return its standard output.

        The command is retried while the forge is unavailable: see `retry.forge_request`.

        Raises:
            TurnFailed: the command failed; the message has the reason.
        """
        assert self.remote is not None
        with self.remote.credentials() as environ:
            argv = ("git", *self._options(), *arguments)
            return retry.forge_request(lambda: self.run_program(*argv, environ=environ), self.is_stopped)

    def run_program(
        self, *argv: str, environ: dict[str, str], stdin: str | None = None, on_chunk: OnChunk | None = None
    ) -> str:
        """Run a program in the job's folder. Return its output; log its errors without the token. Raises TurnFailed."""
        output = _Output(self._name(argv), on_chunk)
        try:
            status = process.run(
                (*LIMITED, *argv),
                cwd=self.folder,
                env=ENVIRONMENT | environ,
                limit_s=max(0.0, self.deadline - time.monotonic()),
                is_stopped=self.is_stopped,
                on_output=output.add,
                stdin=None if stdin is None else stdin.encode(),
            )
        except ProgramTimedOut:
            raise ProgramTimedOut(f"{self._name(argv)} did not end within the step's time limit") from None
        messages = self._text(output.stderr)
        for line in messages.splitlines():
            self.on_line(line)
        if status != 0:
            raise self._failure(argv, status, messages + "\n" + self._text(output.stdout))
        return output.stdout.decode(errors="surrogateescape").removesuffix("\n")

    def _options(self) -> list[str]:
        config = [word for setting in CONFIG for word in ("-c", setting)]
        return [*config, f"--git-dir={self.folder / 'git'}", f"--work-tree={self.folder / 'tree'}"]

    def _text(self, output: bytearray) -> str:
        """Return the end of a program's output, printable and without the token."""
        text = output.decode(errors="replace")
        if self.remote is not None:
            text = self.remote.redact(text)
        return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text[-TEXT_CHARS_MAX:])

    def _name(self, argv: tuple[str, ...]) -> str:
        """Return the name for messages: the program, or `git` and its command without the options."""
        return " ".join(("git", argv[len(self._options()) + 1])) if argv[0] == "git" else argv[0]

    def _failure(self, argv: tuple[str, ...], status: int, text: str) -> TurnFailed:
        """Return the error for a command that failed, by the first pattern of FAILURES that matches `text`."""
        name = self._name(argv)
        if status == NOT_FOUND_BY_SHELL:
            return TurnFailed(f"{argv[0]} is not installed on the machine of the worker")
        has_token = self.remote is not None and self.remote.token is not None
        fields = {
            "url": self.remote.url if self.remote else "",
            "host": self.remote.host if self.remote else "",
            "hint": "it was removed, or the token cannot read it" if has_token else "is it private?",
            "permission": "push to the repository" if name == "git push" else "read the repository",
            "memory": f"{MEMORY_BYTES // 1024**3} GiB",
            "details": _details(text),
        }
        for error, reasons in FAILURES:
            for pattern, reason in reasons.items():
                if re.search(pattern, text):
                    return error(reason.format_map(fields))
        cause = status if status > 0 else signal.Signals(-status).name
        return TurnFailed(f"{name} failed ({cause}): {fields['details']}")


@dataclass(slots=True)
class _Output:
    """Output of a program: the end of its standard error, and its standard output unless `on_chunk` receives that."""

    name: str
    on_chunk: OnChunk | None
    stderr: bytearray = field(default_factory=bytearray)
    stdout: bytearray = field(default_factory=bytearray)

    def add(self, stream: Stream, chunk: bytes) -> None:
        """Add a chunk. Raises TurnFailed if the standard output is too long."""
        if stream == "stderr":
            self.stderr += chunk
            del self.stderr[:-STDERR_BYTES_MAX]
        elif self.on_chunk is not None:
            self.on_chunk(chunk)
        else:
            self.stdout += chunk
            if len(self.stdout) > STDOUT_BYTES_MAX:
                raise TurnFailed(f"{self.name} printed more than {STDOUT_BYTES_MAX // 1024**2} MiB")


def _details(text: str) -> str:
    """Return the error lines of the server and of git, without git's advice.

    At most the last 1,000 characters: a verbose hook on the server prints its reason at the end.
    """
    reasons = [line.split("\t")[-1] for line in re.findall(r"(?m)^(?:remote:|fatal:|error:|!)\s*(.*\S)", text)]
    return "; ".join(dict.fromkeys(reasons))[-1000:] or text.strip()[-1000:] or "it printed no message"
