"""References to secrets: where a secret is, instead of the secret itself. It is read on each use and never stored."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from agent.errors import InvalidConfiguration, TurnFailed

SECRET_BYTES_MAX = 16 * 1024


def check(reference: str) -> str:
    """Return the reference unchanged, if its form is `env:NAME` or `file:/path`. The secret need not exist yet.

    Raises:
        InvalidConfiguration: the reference has another form. The message does not repeat it: it may be a secret.
    """
    kind, _, place = reference.partition(":")
    if (kind == "env" and place.isidentifier()) or (kind == "file" and Path(place).is_absolute()):
        return reference
    raise InvalidConfiguration("write env:NAME or file:/absolute/path instead of the secret itself")


def resolve(reference: str, environ: Mapping[str, str]) -> str:
    """Return the secret that a reference points to, without surrounding whitespace.

    Raises:
        InvalidConfiguration: see `check`.
        TurnFailed: the secret is missing or empty, has several lines, or its file is open to other users.
    """
    kind, _, place = check(reference).partition(":")
    secret = (environ.get(place, "") if kind == "env" else _read(reference, Path(place))).strip()
    if not secret:
        raise TurnFailed(f"{reference} is {'not set or ' if kind == 'env' else ''}empty")
    if not (secret.isascii() and secret.isprintable()):
        raise TurnFailed(f"{reference} must be one line of printable ASCII characters")
    return secret


def _read(reference: str, path: Path) -> str:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise TurnFailed(f"{reference} is not a file")
            if status.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
                raise TurnFailed(f"{reference} can be read or changed by other users of this machine: chmod 600 {path}")
            content = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise TurnFailed(f"{reference} cannot be read: {error.strerror}") from None
    if len(content) > SECRET_BYTES_MAX:
        raise TurnFailed(f"{reference} is longer than {SECRET_BYTES_MAX} bytes")
    return content.decode(errors="replace")
