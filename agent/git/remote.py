"""URL, base branch and token of a repository."""

import base64
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from agent.errors import InvalidConfiguration

USERNAME = "x-access-token"
"""User name for a token. GitHub, GitLab and Gitea accept any; GitHub requires this one for app tokens:
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/authenticating-as-a-github-app-installation
"""
ASKPASS = Path(__file__).with_name("askpass.sh")
REDACTED = "[token]"

_URL = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/[^\s?#\\\x00-\x20\x7f]+")
_BAD_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-./@]|\.lock(?:/|$)|[./]$")
"""Names that https://git-scm.com/docs/git-check-ref-format forbids, and names that look like an option."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository and the credentials for it.

    `ref` is the name of a branch, with or without `refs/heads/`. `token` is None for a repository that needs none.

    Raises:
        InvalidConfiguration: the URL is not http(s) or contains a user, or `ref` is not a valid name.
    """

    url: str
    ref: str
    token: str | None = field(repr=False)

    def __post_init__(self) -> None:
        if "@" in self.url.partition("//")[2].partition("/")[0]:
            raise InvalidConfiguration("the repository's URL must not contain a user or a token: use --git-token")
        if not _URL.fullmatch(self.url):
            raise InvalidConfiguration(f"a repository needs an http or https URL, and {self.url!r} is not one")
        if not self.base or len(self.base) > 250 or _BAD_IN_REF.search(self.base):
            raise InvalidConfiguration(f"{self.ref!r} is not a valid branch name")

    @property
    def base(self) -> str:
        return self.ref.removeprefix("refs/heads/")

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def redact(self, text: str) -> str:
        """Return the text with each form of the token replaced: plain, percent-encoded and Basic authorization."""
        if self.token:
            basic = base64.b64encode(f"{USERNAME}:{self.token}".encode()).decode()
            for secret in (basic, self.token, quote(self.token, safe="")):
                text = text.replace(secret, REDACTED)
        return text

    @contextmanager
    def credentials(self) -> Iterator[dict[str, str]]:
        """Yield the environment variables with which git can ask for the token inside the `with` block.

        The token is only in the memory of this process, and git's askpass script reads it through /proc. It is in no
        argument, environment variable or file, so a crash leaves no copy of it.
        """
        if self.token is None:
            yield {}
            return
        scheme = urlsplit(self.url).scheme
        with os.fdopen(os.memfd_create("token"), "wb", buffering=0) as memory:
            memory.write(self.token.encode())
            yield {
                "GIT_ASKPASS": str(ASKPASS),
                "READERSHIP_USERNAME": USERNAME,
                "READERSHIP_USERNAME_FOR": f"{scheme}://{self.host}",
                "READERSHIP_PASSWORD_FOR": f"{scheme}://{USERNAME}@{self.host}",
                "READERSHIP_PASSWORD": f"/proc/{os.getpid()}/fd/{memory.fileno()}",
            }
