"""A secret is read where it is told to be, and told by nobody."""

import os
from pathlib import Path

import pytest

from agent.errors import InvalidConfiguration, SecretUnreadable
from agent.jobs import secret_ref


def file_of(folder: Path, content: bytes = b"abc\n", mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_it_comes_from_the_environment_that_is_given() -> None:
    assert secret_ref.resolve("env:GIT_TOKEN", {"GIT_TOKEN": " abc\n"}) == "abc"


def test_it_comes_from_a_file(tmp_path: Path) -> None:
    assert secret_ref.resolve(f"file:{file_of(tmp_path)}", {}) == "abc"


def test_a_changed_file_counts_at_the_next_use(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"old")
    secret_ref.resolve(f"file:{path}", {})
    path.write_bytes(b"new")
    assert secret_ref.resolve(f"file:{path}", {}) == "new"


@pytest.mark.parametrize("environ", [{}, {"GIT_TOKEN": ""}, {"GIT_TOKEN": " \n"}])
def test_none_is_told_by_its_name(environ: dict[str, str]) -> None:
    with pytest.raises(SecretUnreadable, match="env:GIT_TOKEN is not set or empty"):
        secret_ref.resolve("env:GIT_TOKEN", environ)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SecretUnreadable, match="token is empty"):
        secret_ref.resolve(f"file:{file_of(tmp_path, b' ')}", {})


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(SecretUnreadable, match="gone cannot be read: No such file"):
        secret_ref.resolve(f"file:{tmp_path}/gone", {})


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o622, 0o606, 0o601])
def test_a_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = file_of(tmp_path, b"abc", mode)
    with pytest.raises(SecretUnreadable, match=f"other users of this machine: chmod 600 {path}"):
        secret_ref.resolve(f"file:{path}", {})


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_a_file_of_the_service_and_its_group_is_read(tmp_path: Path, mode: int) -> None:
    assert secret_ref.resolve(f"file:{file_of(tmp_path, b'abc', mode)}", {}) == "abc"


@pytest.mark.parametrize(
    "reference", ["ghp_0123456789", "env:-", "env:A-B", "env:A B", "file:token", "file:~", "https://x", "ENV:A"]
)
def test_what_is_no_reference_is_refused_and_not_repeated(reference: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        secret_ref.resolve(reference, {"A": "x"})
    assert reference not in str(raised.value)


@pytest.mark.parametrize("content", [b"two\nlines", b"nul\0", b"tab\tbed", "caf\u00e9".encode()])
def test_what_cannot_go_into_a_header_is_refused_and_not_repeated(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SecretUnreadable, match="must be one line of printable ASCII characters") as raised:
        secret_ref.resolve(f"file:{file_of(tmp_path, content)}", {})
    assert "lines" not in str(raised.value).replace("one line", "")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SecretUnreadable, match="is longer than 16384 bytes"):
        secret_ref.resolve(f"file:{file_of(tmp_path, b'x' * 20_000)}", {})


def test_a_pipe_or_a_folder_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("pipe", "."):
        with pytest.raises(SecretUnreadable, match="is not a file|Is a directory"):
            secret_ref.resolve(f"file:{tmp_path}/{name}", {})
