"""A repository at its host: where it is, the branch that work starts from, and the token that opens it."""

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
"""Beside a token GitHub, GitLab and Gitea take any name; GitHub's app tokens want this one:
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/authenticating-as-a-github-app-installation
"""
ASKPASS = Path(__file__).with_name("askpass.sh")
HIDDEN = "[token]"

_URL = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/[^\s?#\\\x00-\x20\x7f]+")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_BAD_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-./@]|\.lock(?:/|$)|[./]$")
"""https://git-scm.com/docs/git-check-ref-format, and nothing that looks like an option."""


@dataclass(frozen=True, slots=True)
class Remote:
    """`ref` is the name of a branch, with or without `refs/heads/`. A repository that all may write to needs no token.
    `user` is whom git says the token is of.

    Raises:
        InvalidConfiguration: the URL is not http(s) or has a user in it, the ref cannot be the name of a branch, or the
            user that of a user.
    """

    url: str
    ref: str
    token: str | None = field(repr=False)
    user: str = USERNAME

    def __post_init__(self) -> None:
        if "@" in self.url.partition("//")[2].partition("/")[0]:
            raise InvalidConfiguration("a repository's URL must not hold a user or a token: name the token by itself")
        if not _URL.fullmatch(self.url):
            raise InvalidConfiguration(f"a repository is told by its http or https URL, and {self.url!r} is none")
        if not self.base or len(self.base) > 250 or _BAD_IN_REF.search(self.base):
            raise InvalidConfiguration(f"{self.ref!r} cannot be the name of a branch")
        if not _USER.fullmatch(self.user):
            raise InvalidConfiguration(f"{self.user!r} cannot be the name of a user")

    @property
    def base(self) -> str:
        """The branch's short name."""
        return self.ref.removeprefix("refs/heads/")

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def clean(self, text: str) -> str:
        """The text without the token in any of the forms it travels in."""
        if self.token:
            basic = base64.b64encode(f"{self.user}:{self.token}".encode()).decode()
            for secret in (basic, self.token, quote(self.token, safe="")):
                text = text.replace(secret, HIDDEN)
        return text

    @contextmanager
    def asking(self) -> Iterator[dict[str, str]]:
        """The environment in which git may ask for the token, as long as this lasts.

        The token is in the memory of this process alone, and read through /proc by a script that git runs: not in an
        argument, an environment or a file, so that nothing of it is left behind by a crash.
        """
        if self.token is None:
            yield {}
            return
        scheme = urlsplit(self.url).scheme
        with os.fdopen(os.memfd_create("token"), "wb", buffering=0) as memory:
            memory.write(self.token.encode())
            yield {
                "GIT_ASKPASS": str(ASKPASS),
                "READERSHIP_USERNAME": self.user,
                "READERSHIP_USERNAME_FOR": f"{scheme}://{self.host}",
                "READERSHIP_PASSWORD_FOR": f"{scheme}://{self.user}@{self.host}",
                "READERSHIP_PASSWORD": f"/proc/{os.getpid()}/fd/{memory.fileno()}",
            }
