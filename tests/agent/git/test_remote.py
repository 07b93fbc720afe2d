"""URL, base branch and token of a repository."""

import base64
import os
import subprocess
from pathlib import Path

import pytest

from agent.errors import InvalidConfiguration
from agent.git.remote import ASKPASS, Remote

URL = "https://git.example:8443/team/site.git"


def ask(question: str, environ: dict[str, str]) -> tuple[int, str]:
    """Return the status and the answer of git's askpass program."""
    env = {"PATH": os.environ["PATH"]} | environ
    done = subprocess.run([ASKPASS, question], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


def test_askpass_answers_for_the_host_of_the_repository_alone() -> None:
    with Remote(URL, "main", "se cret").credentials() as environ:
        assert ask("Username for 'https://git.example:8443': ", environ) == (0, "x-access-token")
        assert ask("Password for 'https://x-access-token@git.example:8443': ", environ) == (0, "se cret")
        for host in ("https://git.example", "http://git.example:8443", "https://git.example:8443.evil.example"):
            assert ask(f"Username for '{host}': ", environ) == (1, "")
            assert ask(f"Password for '{host.replace('//', '//x-access-token@')}': ", environ) == (1, "")


def test_token_is_in_no_environment_variable_and_unreadable_after_the_block() -> None:
    with Remote(URL, "main", "se cret").credentials() as environ:
        place = Path(environ["READERSHIP_PASSWORD"])
        assert place.read_text() == "se cret"
        assert "se cret" not in "".join(environ.values())
    assert not place.exists()


def test_repository_without_a_token_needs_no_environment() -> None:
    with Remote(URL, "main", None).credentials() as environ:
        assert environ == {}


def test_every_form_of_the_token_is_redacted() -> None:
    remote = Remote(URL, "main", "se/cret+1")
    basic = base64.b64encode(b"x-access-token:se/cret+1").decode()
    text = f"plain se/cret+1, percent-encoded se%2Fcret%2B1, Basic {basic}, se/cret"
    assert remote.redact(text) == "plain [token], percent-encoded [token], Basic [token], se/cret"
    assert "se/cret+1" not in repr(remote)


@pytest.mark.parametrize("ref", ["release/2", "refs/heads/release/2"])
def test_base_is_the_short_branch_name(ref: str) -> None:
    assert Remote(URL, ref, None).base == "release/2"


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@example.com/a.git", "https://secret@example.com/a.git", "ssh://git@example.com/a.git",
        "git@example.com:a.git", "file:///etc", "/etc", "ext::sh -c id", "https://example.com",
        "https://example.com/a b", "https://example.com/a?token=secret", "https://example.com/a\n",
        "--upload-pack=id", "",
    ],
)  # fmt: skip
def test_invalid_or_secret_bearing_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        Remote(url, "main", None)
    assert "secret" not in str(raised.value).replace("token=secret", "")


@pytest.mark.parametrize(
    "ref",
    [
        "", "-x", "--upload-pack=id", "a..b", "a b", "a:b", "a^", "a~1", "a*", "a\n", "/a", "a/", "a.lock", "@{u}",
        "a\\b",
    ],
)  # fmt: skip
def test_invalid_branch_name_is_refused(ref: str) -> None:
    with pytest.raises(InvalidConfiguration):
        Remote("https://example.com/a.git", ref, None)
