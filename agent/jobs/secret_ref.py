"""A secret is told by where it is, and read there when it is used: it is never kept, nor said."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from agent.errors import InvalidConfiguration, SecretUnreadable

SECRET_BYTES_MAX = 16 * 1024


def check(reference: str) -> str:
    """The reference, if it is of the form `env:NAME` or `file:/path`. What it leads to need not be there yet.

    Raises:
        InvalidConfiguration: it is neither; it may be a secret itself, and so the message does not repeat it.
    """
    kind, _, place = reference.partition(":")
    if (kind == "env" and place.isidentifier()) or (kind == "file" and Path(place).is_absolute()):
        return reference
    raise InvalidConfiguration("a secret is named by env:NAME or file:/absolute/path, and is not written down itself")


def resolve(reference: str, environ: Mapping[str, str]) -> str:
    """The secret that a reference of `check` leads to, without the space around it.

    Raises:
        SecretUnreadable: it is not there, empty, of several lines, or in a file that others on the machine can read.
    """
    kind, _, place = check(reference).partition(":")
    secret = (environ.get(place, "") if kind == "env" else _read(reference, Path(place))).strip()
    if not secret:
        raise SecretUnreadable(f"{reference} is {'not set or ' if kind == 'env' else ''}empty")
    if not (secret.isascii() and secret.isprintable()):
        raise SecretUnreadable(f"{reference} must be one line of printable ASCII characters")
    return secret


def _read(reference: str, path: Path) -> str:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise SecretUnreadable(f"{reference} is not a file")
            if found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
                raise SecretUnreadable(
                    f"{reference} can be read or changed by others on this machine: chmod 600 {path}"
                )
            content = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise SecretUnreadable(f"{reference} cannot be read: {error.strerror}") from None
    if len(content) > SECRET_BYTES_MAX:
        raise SecretUnreadable(f"{reference} is longer than a secret is ({SECRET_BYTES_MAX} bytes)")
    return content.decode(errors="replace")
