"""References to secrets: reading them, refusing unsafe ones, and never repeating a secret in a message."""

import os
from pathlib import Path

import pytest

from agent.errors import InvalidConfiguration, TurnFailed
from agent.jobs import secret_ref


def file_of(folder: Path, content: bytes = b"abc\n", mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_secret_is_read_from_the_environment_or_a_file_at_each_use_without_whitespace(tmp_path: Path) -> None:
    assert secret_ref.resolve("env:GIT_TOKEN", {"GIT_TOKEN": " abc\n"}) == "abc"
    path = file_of(tmp_path)
    assert secret_ref.resolve(f"file:{path}", {}) == "abc"
    path.write_bytes(b"new")
    assert secret_ref.resolve(f"file:{path}", {}) == "new"


@pytest.mark.parametrize("environ", [{}, {"GIT_TOKEN": ""}, {"GIT_TOKEN": " \n"}])
def test_missing_or_empty_variable_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(TurnFailed, match="env:GIT_TOKEN is not set or empty"):
        secret_ref.resolve("env:GIT_TOKEN", environ)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("empty", "empty is empty"),
        ("missing", "missing cannot be read: No such file"),
        ("large", "is longer than 16384 bytes"),
        ("pipe", "is not a file|Is a directory"),
        (".", "is not a file|Is a directory"),
    ],
)
def test_empty_missing_or_large_file_pipe_or_folder_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    for file, content in (("empty", b" "), ("large", b"x" * 20_000)):
        file_of(tmp_path, content).rename(tmp_path / file)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(TurnFailed, match=reason):
        secret_ref.resolve(f"file:{tmp_path}/{name}", {})


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o622, 0o606, 0o601])
def test_file_that_other_users_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = file_of(tmp_path, b"abc", mode)
    with pytest.raises(TurnFailed, match=f"other users of this machine: chmod 600 {path}"):
        secret_ref.resolve(f"file:{path}", {})


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_file_that_only_the_service_and_its_group_can_read_is_read(tmp_path: Path, mode: int) -> None:
    assert secret_ref.resolve(f"file:{file_of(tmp_path, b'abc', mode)}", {}) == "abc"


@pytest.mark.parametrize(
    "reference", ["ghp_0123456789", "env:-", "env:A-B", "env:A B", "file:token", "file:~", "https://x", "ENV:A"]
)
def test_other_text_than_a_reference_is_refused_and_not_repeated(reference: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        secret_ref.resolve(reference, {"A": "x"})
    assert reference not in str(raised.value)


@pytest.mark.parametrize("content", [b"two\nlines", b"nul\0", b"tab\tbed", "caf\u00e9".encode()])
def test_secret_that_cannot_be_in_a_header_is_refused_and_not_repeated(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TurnFailed, match="must be one line of printable ASCII characters") as raised:
        secret_ref.resolve(f"file:{file_of(tmp_path, content)}", {})
    assert "lines" not in str(raised.value).replace("one line", "")
