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
"""Each host takes any name beside a token; GitHub's app tokens want this one:
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/authenticating-as-a-github-app-installation
"""
ASKPASS = Path(__file__).with_name("askpass.sh")
HIDDEN = "[token]"

_URL = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?/[^\s?#\\\x00-\x20\x7f]+")
_BAD_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[-./@]|\.lock(?:/|$)|[./]$")
"""https://git-scm.com/docs/git-check-ref-format, and nothing that looks like an option."""


@dataclass(frozen=True, slots=True)
class Remote:
    """`ref` is the name of a branch, with or without `refs/heads/`. A repository that all may write to needs no token.

    Raises:
        InvalidConfiguration: the URL is not http(s), has a user in it, or the ref cannot be the name of a branch.
    """

    url: str
    ref: str
    token: str | None = field(repr=False)

    def __post_init__(self) -> None:
        if "@" in self.url.partition("//")[2].partition("/")[0]:
            raise InvalidConfiguration("a repository's URL must not hold a user or a token: name the token by itself")
        if not _URL.fullmatch(self.url):
            raise InvalidConfiguration(f"a repository is told by its http or https URL, and {self.url!r} is none")
        if not self.base or len(self.base) > 250 or _BAD_IN_REF.search(self.base):
            raise InvalidConfiguration(f"{self.ref!r} cannot be the name of a branch")

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
            basic = base64.b64encode(f"{USERNAME}:{self.token}".encode()).decode()
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
                "READERSHIP_USERNAME": USERNAME,
                "READERSHIP_USERNAME_FOR": f"{scheme}://{self.host}",
                "READERSHIP_PASSWORD_FOR": f"{scheme}://{USERNAME}@{self.host}",
                "READERSHIP_PASSWORD": f"/proc/{os.getpid()}/fd/{memory.fileno()}",
            }
