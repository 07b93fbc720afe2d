"""Pull request of a branch: find the open one, or create one."""

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeVar
from urllib.parse import quote, unquote, urlsplit

import httpx
import msgspec

from agent import retry
from agent.errors import ForgeUnavailable, TurnFailed, TurnStopped
from agent.forge.forges import FORGES, Forge, ForgeName, Proposal, PullRequest, default_api_base
from agent.git.remote import REDACTED

TIMEOUT_S = 30.0
"""Deadline of a whole request, from the DNS lookup to the last byte of the response, in seconds."""
REDIRECTS_MAX = 3
PAGES_MAX = 20
"""Maximum number of pages of open pull requests to read. Gitea cannot filter by branch, but it sorts by date, and
the pull request of an active job is one of the latest."""
TITLE_CHARS_MAX = 255
BODY_CHARS_MAX = 60_000
"""Maximum length of a pull request's description; GitHub accepts 65,536 characters."""

UNAVAILABLE = frozenset({429, 502, 503, 504})
"""Statuses that ask the client to repeat the request later."""
ERROR_CHARS_MAX = 500
ERROR_KEYS = ("message", "error", "error_description", "errors")

Decoded = TypeVar("Decoded")


def open_pull_request(
    forge: ForgeName,
    api_base: str | None,
    repository_url: str,
    token: str,
    proposal: Proposal,
    is_stopped: Callable[[], bool],
) -> str:
    """Return the URL of the branch's open pull request; create it if necessary. Repeated calls create only one.

    `api_base` is None if it follows from the repository's URL. If the forge is unavailable, the whole operation is
    retried, beginning with the search: a lost response may be that of a created pull request.

    Raises:
        TurnFailed: the forge refuses the pull request; the message has the reason.
        ForgeUnavailable: the forge did not answer in three attempts.
        TurnStopped: `is_stopped` returned true.
    """
    row = FORGES[forge]
    base = (api_base or default_api_base(forge, repository_url)).rstrip("/")
    path = _path_of(row, base, repository_url)
    headers = {"User-Agent": "Readership", **row.headers(token)}
    api = _ForgeApi(row, base, path, token, headers, ssl.create_default_context(), is_stopped)
    return retry.forge_request(lambda: _find(api, proposal.branch) or _create(api, proposal), is_stopped)


@dataclass(frozen=True, slots=True)
class _ForgeApi:
    """API of a forge for one repository."""

    forge: Forge
    base: str
    path: str
    token: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    tls: ssl.SSLContext
    is_stopped: Callable[[], bool]

    @property
    def project(self) -> str:
        return f"{self.base}/{self.forge.project(self.path)}"

    def request(self, method: str, url: str, body: Mapping[str, str] | None = None) -> httpx.Response:
        """Send a request, follow its redirects, and return the response.

        A stop interrupts a GET but not a POST: the forge may execute the POST, and its response would be lost.

        Raises:
            TurnFailed: a redirect leads to another host, or there are too many of them.
            ForgeUnavailable: the forge cannot be reached, does not answer in time, or asks for a pause.
            TurnStopped: `is_stopped` returned true.
        """
        is_interrupted = self.is_stopped if method == "GET" else lambda: False
        for _ in range(REDIRECTS_MAX + 1):
            if self.is_stopped():
                raise TurnStopped("the turn was stopped")
            try:
                response = retry.run_with_deadline(TIMEOUT_S, partial(self._send, method, url, body), is_interrupted)
            except TimeoutError:
                raise ForgeUnavailable(f"{self.base} did not answer within {TIMEOUT_S:g} s") from None
            except httpx.RequestError as error:
                raise ForgeUnavailable(self._redact(f"{self.base} could not be reached: {error}")) from None
            if not response.has_redirect_location:
                return self._available(response)
            url = self._next_url(response)
        raise TurnFailed(f"{self.base} redirects more than {REDIRECTS_MAX} times")

    async def _send(self, method: str, url: str, body: Mapping[str, str] | None) -> httpx.Response:
        async with httpx.AsyncClient(
            timeout=None,  # noqa: S113  # `run_with_deadline` has the deadline
            trust_env=False,
            verify=self.tls,
            headers=self.headers,
        ) as client:
            return await client.request(method, url, json=body)

    def _available(self, response: httpx.Response) -> httpx.Response:
        """Return the response. Raises ForgeUnavailable if its status or headers ask the client to retry later."""
        pause_s = retry_after_s(response)
        if response.status_code not in UNAVAILABLE and pause_s is None:
            return response
        reason = f"{self.base} is unavailable ({response.status_code})"
        if text := error_text(response.content):
            reason += f": {text}"
        if pause_s:
            reason += f"; it asks for a pause of {pause_s:.0f} s"
        raise ForgeUnavailable(self._redact(reason), pause_s or 0)

    def refusal(self, response: httpx.Response) -> TurnFailed:
        """Return the error for a response with an unexpected status."""
        status, text, name = response.status_code, error_text(response.content), self.forge.name
        reason = {
            401: f"{name} does not accept the token (401)",
            403: f"{name} forbids the request (403); the token needs {self.forge.required_rights}",
            404: f"{name} has no {self.path} at {self.base}, or the token may not read it (404)",
        }.get(status, f"{name} refused the pull request ({status})")
        return TurnFailed(self._redact(f"{reason}: {text}" if text else reason))

    def _next_url(self, response: httpx.Response) -> str:
        """Return the target of a redirect. Raises TurnFailed for another host, which must not receive the token."""
        target = response.url.join(response.headers["Location"])
        if (target.scheme, target.host, target.port) != (response.url.scheme, response.url.host, response.url.port):
            raise TurnFailed(
                self._redact(f"{self.base} redirects to another host, {target.host}; the token is not sent there")
            )
        return str(target)

    def _redact(self, text: str) -> str:
        return text.replace(self.token, REDACTED)


def _path_of(forge: Forge, base: str, repository_url: str) -> str:
    """Return the repository's path within its installation, which may itself be below a path."""
    path = unquote(urlsplit(repository_url).path).strip("/").removesuffix(".git")
    parent = urlsplit(base).path.removesuffix(forge.api_suffix).strip("/")
    return path.removeprefix(f"{parent}/") if parent else path


def _find(api: _ForgeApi, branch: str) -> str | None:
    """Return the URL of the branch's open pull request, or None."""
    own = (each.url for each in _open_pull_requests(api, branch) if each.branch == branch and not each.is_from_fork)
    return next(own, None)


def _open_pull_requests(api: _ForgeApi, branch: str) -> Iterator[PullRequest]:
    """Yield open pull requests; if the forge can filter them, only those of the branch."""
    query = api.forge.list_query(api.path, branch)
    for page in range(1, PAGES_MAX + 1):
        url = httpx.URL(f"{api.project}/{api.forge.pulls}", params={**query, "page": str(page)})
        response = api.request("GET", str(url))
        if response.status_code != 200:
            raise api.refusal(response)
        pull_requests = _decode(api, api.forge.read_all, response)
        if not pull_requests:  # a short page may be followed by others: installations have a maximum page size
            return
        yield from pull_requests


def _create(api: _ForgeApi, proposal: Proposal) -> str:
    """Return the URL of a new pull request, or of one that was created since the search."""
    title, base = " ".join(proposal.title.split())[:TITLE_CHARS_MAX], proposal.base.removeprefix("refs/heads/")
    proposal, forge = Proposal(proposal.branch, base, title, proposal.body[:BODY_CHARS_MAX]), api.forge
    _require_branch(api, proposal.base)
    response = api.request("POST", f"{api.project}/{forge.pulls}", forge.creation(proposal))
    if response.status_code == 201:
        return _decode(api, forge.read, response).url
    if response.status_code == forge.duplicate_status and (url := _find(api, proposal.branch)):
        return url
    raise api.refusal(response)


def _require_branch(api: _ForgeApi, base: str) -> None:
    """Raise TurnFailed if the repository has no branch `base`.

    GitLab accepts a merge request into a missing branch. The error of other forges does not name the missing branch.
    """
    response = api.request("GET", f"{api.project}/{api.forge.branch.format(quote(base, safe=''))}")
    if response.status_code == 404:
        raise TurnFailed(
            f"{api.path} has no branch {base!r} to merge the pull request into: "
            "set the project's ref to a branch, not a tag or a commit"
        )
    if response.status_code != 200:
        raise api.refusal(response)


def _decode(api: _ForgeApi, read: Callable[[bytes], Decoded], response: httpx.Response) -> Decoded:
    try:
        return read(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise TurnFailed(
            f"{api.base} does not answer like the API of {api.forge.name}: check the project's API base"
        ) from None


def retry_after_s(response: httpx.Response) -> float | None:
    """Return the pause that the forge asks for, in seconds, or None. GitHub asks for one with a 403, too.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    if response.status_code not in UNAVAILABLE | {403}:
        return None
    retry_after = response.headers.get("Retry-After", "")
    if retry_after.isdigit():
        return float(retry_after)
    with suppress(ValueError):
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    reset = response.headers.get("X-RateLimit-Reset", "")
    if response.headers.get("X-RateLimit-Remaining") == "0" and reset.isdigit():
        return max(0.0, int(reset) - time.time())
    return None


def error_text(content: bytes) -> str:
    """Return the error messages in a response body on one line, or an empty text if the body is not a JSON object.

    GitHub and Gitea use the keys `message` and `errors`, and GitLab uses `message` or `error`.
    """
    try:
        body = msgspec.json.decode(content, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    text = "; ".join(dict.fromkeys(each for key in ERROR_KEYS for each in _texts(body.get(key))))
    return "".join(each if each.isprintable() else " " for each in text)[:ERROR_CHARS_MAX]


def _texts(value: object) -> Iterator[str]:
    """Yield the messages in a JSON value.

    An error of GitHub is an object with either a message or a resource, a field and a code. GitLab's errors are lists
    of messages by field.
    """
    match value:
        case str():
            yield value
        case {"message": str(message)}:
            yield message
        case {"field": field, "code": code}:
            yield f"{field} {code}"
        case dict():
            yield from (f"{key} {text}" for key, each in value.items() for text in _texts(each))
        case list():
            yield from (text for each in value for text in _texts(each))
        case _:
            return
