"""The pull request of a branch: the open one if there is one, else a new one."""

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

import httpx
import msgspec

from agent import retry
from agent.deadline import within
from agent.errors import HostUnavailable, InvalidConfiguration, PullRequestRefused, Stopped
from agent.forge.forges import CODE_HOSTS, CodeHost, Forge, Proposal, PullRequest
from agent.forge.response import UNAVAILABLE, retry_after_s, words_of
from agent.git.remote import HIDDEN

LIMIT_S = 30.0
"""Of a whole request, from the look-up of the host to the last byte."""
API_BASE = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s?#\\]*)?")
API_BASE_EXAMPLE = "https://gitlab.example.com/api/v4"
LATE_S = 60.0
"""For so long a pull request that was asked for in vain is looked for, where the host would make a second one."""
LOOK_AGAIN_S = 3.0
REDIRECTS_MAX = 3
PAGES_MAX = 20
"""Of open pull requests: Gitea's and Pagure's cannot be asked for by branch, and the job's is one of the latest."""
TITLE_CHARS_MAX = 255
BODY_CHARS_MAX = 60_000
"""GitHub takes 65,536."""

Read = TypeVar("Read")


def api_base_of(forge: Forge, repository_url: str) -> str:
    """Where the API of a repository's host is, if its installation is not under a path of its own."""
    parts = urlsplit(repository_url)
    return CODE_HOSTS[forge].api_base(f"{parts.scheme}://{parts.netloc}")


def check_api_base(api_base: str) -> str:
    """The address, if it is one.

    Raises:
        InvalidConfiguration: it is not.
    """
    if not API_BASE.fullmatch(api_base):
        raise InvalidConfiguration(f"an API base is an http or https URL such as {API_BASE_EXAMPLE}")
    return api_base


def open_pull_request(
    forge: Forge,
    api_base: str | None,
    repository_url: str,
    token: str,
    proposal: Proposal,
    is_stopped: Callable[[], bool],
) -> str:
    """The URL of the branch's open pull request, which is made if there is none. Any number of times makes one.

    `api_base` is None where it follows from the repository's URL. A host that is not to be had is asked three times,
    each time from the start: an answer that was lost may be that of a pull request that was made.

    Raises:
        PullRequestRefused: the host will not have it, and the message says why.
        HostUnavailable: it did not answer, thrice.
        Stopped: `is_stopped` said so.
    """
    row = CODE_HOSTS[forge]
    base = check_api_base(api_base or api_base_of(forge, repository_url)).rstrip("/")
    path = _path_of(row, base, repository_url)
    headers = {"User-Agent": "Readership", **row.headers(token)}
    host = _Host(row, base, path, token, headers, ssl.create_default_context(), is_stopped)
    return retry.persistently(lambda: _found(host, proposal.branch) or _made(host, proposal), is_stopped)


@dataclass(frozen=True, slots=True)
class _Host:
    """One repository at its host."""

    row: CodeHost
    base: str
    path: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    tls: ssl.SSLContext
    is_stopped: Callable[[], bool]

    @property
    def project(self) -> str:
        return f"{self.base}/{self.row.project(self.path)}"

    def ask(self, method: str, url: str, body: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer, of wherever redirects lead.

        A POST is not cut by a stop, but by its limit alone: the host may do what it asks for, and nobody would hear.

        Raises:
            PullRequestRefused: they lead to another host, or nowhere.
            HostUnavailable: it cannot be reached, does not answer in time, or asks to be left alone.
            Stopped: `is_stopped` said so.
        """
        is_cut = self.is_stopped if method == "GET" else lambda: False
        for _ in range(REDIRECTS_MAX + 1):
            if self.is_stopped():
                raise Stopped("the turn was stopped")
            try:
                answer = within(LIMIT_S, partial(self._asked, method, url, body), is_cut)
            except TimeoutError:
                raise HostUnavailable(f"{self.base} did not answer within {LIMIT_S:g} s") from None
            except httpx.RequestError as error:
                raise HostUnavailable(self._clean(f"{self.base} could not be reached: {error}")) from None
            if not answer.has_redirect_location:
                break
            url = self._next(answer)
        else:
            raise PullRequestRefused(f"{self.base} redirects without end")
        pause_s = retry_after_s(answer)
        if answer.status_code in UNAVAILABLE or pause_s is not None:
            raise HostUnavailable(
                self._clean(f"{self.base} is not to be had ({answer.status_code}) {words_of(answer.content)}")
                + (f"; it asks to be left alone for {pause_s:.0f} s" if pause_s else ""),
                pause_s or 0,
            )
        return answer

    async def _asked(self, method: str, url: str, body: Mapping[str, str] | None) -> httpx.Response:
        async with httpx.AsyncClient(
            timeout=None,  # noqa: S113  # its timeout is that of `within`
            trust_env=False,
            verify=self.tls,
            headers=self.headers,
        ) as client:
            return await client.request(method, url, json=body)

    def refusal(self, answer: httpx.Response) -> PullRequestRefused:
        """The error of an answer that is none of those awaited."""
        status, words, name = answer.status_code, words_of(answer.content), self.row.name
        reason = {
            401: f"{name} does not accept the token (401)",
            403: f"{name} forbids it (403); the token needs {self.row.right}",
            404: f"{name} has no {self.path} at {self.base}, or the token may not see it (404)",
        }.get(status, f"{name} refused the pull request ({status})")
        return PullRequestRefused(self._clean(f"{reason}: {words}" if words else reason))

    def _next(self, answer: httpx.Response) -> str:
        """Where a redirect leads: a renamed repository, but never another host, which would be sent the token."""
        target = answer.url.join(answer.headers["Location"])
        if (target.scheme, target.host, target.port) != (answer.url.scheme, answer.url.host, answer.url.port):
            raise PullRequestRefused(
                self._clean(f"{self.base} leads to another host, {target.host}, which is not sent the token")
            )
        return str(target)

    def _clean(self, text: str) -> str:
        return text.replace(self.token, HIDDEN)


def _path_of(row: CodeHost, base: str, repository_url: str) -> str:
    """The repository's path at its installation, which may itself be under a path."""
    path = unquote(urlsplit(repository_url).path).strip("/").removesuffix(".git")
    under = urlsplit(base).path.removesuffix(row.api_suffix).strip("/")
    return path.removeprefix(f"{under}/") if under else path


def _found(host: _Host, branch: str) -> str | None:
    """The URL of the branch's open pull request."""
    return next((each.url for each in _listed(host, branch) if each.branch == branch and each.is_inside), None)


def _listed(host: _Host, branch: str) -> Iterator[PullRequest]:
    query = host.row.listing(host.path, branch)
    for page in range(1, PAGES_MAX + 1):
        answer = host.ask(
            "GET", str(httpx.URL(f"{host.project}/{host.row.pulls}", params={**query, "page": str(page)}))
        )
        if answer.status_code != 200:
            raise host.refusal(answer)
        listed = _decoded(host, host.row.read_all, answer)
        if not listed:  # a page may be shorter than what was asked for: installations have a maximum of their own
            return
        yield from listed


def _made(host: _Host, proposal: Proposal) -> str:
    """The URL of a new pull request, or of the one that was made meanwhile."""
    proposal = _cut(proposal)
    if host.row.branch is not None:
        _require_branch(host, host.row.branch, proposal.base)
    try:
        answer = host.ask(
            "POST", f"{host.project}/{host.row.created_at or host.row.pulls}", host.row.proposed(proposal)
        )
    except HostUnavailable as error:
        is_refused = host.row.duplicate_status is not None or error.retry_after_s > 0
        if not is_refused and (url := _found_late(host, proposal.branch)):
            return url
        raise
    if answer.status_code == host.row.created_status:
        return _decoded(host, host.row.read, answer).url
    if answer.status_code == host.row.duplicate_status and (url := _found(host, proposal.branch)):
        return url
    raise host.refusal(answer)


def _found_late(host: _Host, branch: str) -> str | None:
    """The URL of one that the host makes after nobody waits for its answer any more."""
    until_s = time.monotonic() + LATE_S
    while time.monotonic() < until_s:
        with suppress(HostUnavailable):
            if url := _found(host, branch):
                return url
        retry.pause(LOOK_AGAIN_S, host.is_stopped)
    return None


def _require_branch(host: _Host, branch: str, base: str) -> None:
    """GitLab takes a merge request into a branch that is not there; the others' words do not say which is missing."""
    answer = host.ask("GET", f"{host.project}/{branch.format(quote(base, safe=''))}")
    if answer.status_code == 404:
        raise PullRequestRefused(
            f"{host.path} has no branch {base!r} for the pull request to go to; "
            "it must be a branch, not a tag or a commit: set the project's ref to one"
        )
    if answer.status_code != 200:
        raise host.refusal(answer)


def _cut(proposal: Proposal) -> Proposal:
    title = " ".join(proposal.title.split())[:TITLE_CHARS_MAX]
    return Proposal(proposal.branch, proposal.base.removeprefix("refs/heads/"), title, proposal.body[:BODY_CHARS_MAX])


def _decoded(host: _Host, read: Callable[[bytes], Read], answer: httpx.Response) -> Read:
    try:
        return read(answer.content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise PullRequestRefused(
            f"{host.base} does not answer as {host.row.name} does: is the API base right?"
        ) from None
