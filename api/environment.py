"""Values of environment variables, checked. A message of InvalidSetting names the variable."""

import ipaddress
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from api.errors import InvalidSetting
from warehouse.database.url import libpq_url, sqlite_name
from warehouse.errors import InvalidRoot
from warehouse.folder import CONTROL, LAKE, sqlite_url
from warehouse.lake import roots
from warehouse.lake.roots import LocalPath, Root

NUMBER_MAX = 1_000_000_000
"""Maximum of each number that has no smaller maximum."""
LOG_LEVELS = ("debug", "info", "warning", "error")
BASE_URL = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~-]+)*/?")
RAY = re.compile(r"auto|(?:ray://)?(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def base_url(environ: Mapping[str, str]) -> str:
    """Return the base URL without a trailing slash; an empty string if the variable is not set."""
    text = environ.get("READERSHIP_BASE_URL")
    if text is None:
        return ""
    if not BASE_URL.fullmatch(text):  # the message does not quote the URL, which may contain a password
        raise InvalidSetting(
            "READERSHIP_BASE_URL must be a URL such as https://example.com/stats, without user, query and fragment"
        )
    return text.rstrip("/")


def log_level(environ: Mapping[str, str], default: str) -> str:
    """Return one of LOG_LEVELS."""
    level = environ.get("READERSHIP_LOG_LEVEL", default)
    if level not in LOG_LEVELS:
        raise InvalidSetting(f"READERSHIP_LOG_LEVEL must be one of {', '.join(LOG_LEVELS)}, not {level!r}")
    return level


def trusted_proxies(environ: Mapping[str, str], default: str) -> str:
    """Return the addresses and networks in uvicorn's form.

    Any other word is refused: uvicorn would parse it as the name of a Unix socket, and trust no proxy.
    """
    text = environ.get("READERSHIP_TRUSTED_PROXIES", default)
    for each in text.split(","):
        try:
            if each.strip() not in {"", "*"}:
                ipaddress.ip_network(each.strip())
        except ValueError as error:
            raise InvalidSetting(
                f"READERSHIP_TRUSTED_PROXIES must be IP addresses, networks such as 10.0.0.0/8, or *: {error}"
            ) from None
    return text


def database_url(environ: Mapping[str, str], data: Path) -> str:
    """Return the URL of the control database; by default that of a SQLite file in the data folder."""
    url = environ.get("READERSHIP_DATABASE_URL")
    if url is None:
        return sqlite_url(data / CONTROL)
    if (server := libpq_url(url)) is None and not sqlite_name(url):  # no message quotes it: it may have a password
        raise InvalidSetting("READERSHIP_DATABASE_URL must begin with postgresql:// or sqlite:///")
    if server is not None and find_spec("psycopg") is None:
        raise InvalidSetting("READERSHIP_DATABASE_URL needs psycopg: install readership[postgresql]")
    return server or url


def lake(environ: Mapping[str, str], data: Path, cache_mib: int) -> Root:
    """Return the root of the lake, whose cache has `cache_mib` MiB. Nothing is read or created."""
    uri = environ.get("READERSHIP_LAKE")
    if uri is None:
        return LocalPath(data / LAKE)
    try:
        return roots.open_remote(uri, data / LAKE, cache_mib * 1024 * 1024)
    except InvalidRoot as error:
        raise InvalidSetting(f"READERSHIP_LAKE {error}") from None


def ray(environ: Mapping[str, str]) -> str:
    """Return the address of a Ray cluster; an empty string if the variable is not set."""
    address = environ.get("READERSHIP_RAY", "")
    if address and not RAY.fullmatch(address):
        raise InvalidSetting(
            "READERSHIP_RAY must be auto, the address HOST:PORT of a cluster that this machine is part of, or "
            f"ray://HOST:PORT, not {address!r}"
        )
    return address


def switch(environ: Mapping[str, str], name: str) -> bool:
    """Return whether a variable is on. `name` has no prefix."""
    text = environ.get(f"READERSHIP_{name}", "off")
    if text not in {"on", "off"}:
        raise InvalidSetting(f"READERSHIP_{name} must be on or off, not {text!r}")
    return text == "on"


def number(environ: Mapping[str, str], name: str, default: int, least: int = 1, most: int = NUMBER_MAX) -> int:
    """Return the whole number of a variable. `name` has no prefix."""
    text = environ.get(f"READERSHIP_{name}", str(default))
    if not (text.isascii() and text.isdigit()):
        raise InvalidSetting(f"READERSHIP_{name} must be a whole number of at least {least}, not {text!r}")
    number = int(text) if len(text) <= len(str(most)) else most + 1
    if not least <= number <= most:
        limit = f"at least {least}" if number < least else f"at most {most}"
        raise InvalidSetting(f"READERSHIP_{name} must be a whole number of {limit}, not {text!r}")
    return number
