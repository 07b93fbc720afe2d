"""Values of settings, parsed and checked. An error says what the value must be, and `settings` adds the variable."""

import ipaddress
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from api.errors import InvalidSetting
from warehouse.database.url import libpq_url, sqlite_name

NUMBER_MAX = 1_000_000_000
"""Maximum of each number that has no smaller maximum."""
LOG_LEVELS = ("debug", "info", "warning", "error")
BASE_URL = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~-]+)*/?")
RAY = re.compile(r"auto|(?:ray://)?(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


def base_url(text: str) -> str:
    """Return a base URL without a trailing slash."""
    if not BASE_URL.fullmatch(text):  # the message does not quote the URL, which may contain a password
        raise InvalidSetting("must be a URL such as https://example.com/stats, without user, query and fragment")
    return text.rstrip("/")


def log_level(text: str) -> str:
    """Return one of LOG_LEVELS."""
    if text not in LOG_LEVELS:
        raise InvalidSetting(f"must be one of {', '.join(LOG_LEVELS)}, not {text!r}")
    return text


def trusted_proxies(text: str) -> str:
    """Return addresses and networks in uvicorn's form.

    Any other word is refused: uvicorn would parse it as the name of a Unix socket, and trust no proxy.
    """
    for each in text.split(","):
        try:
            if each.strip() not in {"", "*"}:
                ipaddress.ip_network(each.strip())
        except ValueError as error:
            raise InvalidSetting(f"must be IP addresses, networks such as 10.0.0.0/8, or *: {error}") from None
    return text


def database_url(text: str) -> str:
    """Return the URL of a control database, in the form of libpq for PostgreSQL."""
    if (server := libpq_url(text)) is None and not sqlite_name(text):  # no message quotes it: it may have a password
        raise InvalidSetting("must begin with postgresql:// or sqlite:///")
    if server is not None and find_spec("psycopg") is None:
        raise InvalidSetting("needs psycopg: install readership[postgresql]")
    return server or text


def ray(text: str) -> str:
    """Return the address of a Ray cluster; empty for none."""
    if text and not RAY.fullmatch(text):
        raise InvalidSetting(
            "must be auto, the address HOST:PORT of a cluster that this machine is part of, or "
            f"ray://HOST:PORT, not {text!r}"
        )
    return text


def switch(text: str) -> bool:
    """Return whether the text is `on`."""
    if text not in {"on", "off"}:
        raise InvalidSetting(f"must be on or off, not {text!r}")
    return text == "on"


def header_name(text: str) -> str:
    """Return the name of a header in lower case; empty for none."""
    if not re.fullmatch(r"[A-Za-z0-9-]*", text):
        raise InvalidSetting(f"must be the name of a header, such as CF-IPCountry, not {text!r}")
    return text.lower()


def price(text: str) -> str:
    """Return an amount and its currency, separated by a space; empty for none."""
    if not re.fullmatch(r"([0-9]{1,6}(\.[0-9]{1,6})? [A-Z]{3})?", text):
        raise InvalidSetting(f"must be an amount and a currency, such as 0.09 EUR, not {text!r}")
    return text


def country_database(text: str) -> str:
    """Return the absolute path of a MaxMind DB file with countries; empty for none."""
    if not text:
        return ""
    from ingest.places import database  # noqa: PLC0415  # off by default

    path = str(Path(text).absolute())
    try:
        database.require_countries(path)
    except OSError as error:
        raise InvalidSetting(f"the file {path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidSetting(str(error)) from error
    return path


def number(least: int = 1, most: int = NUMBER_MAX) -> Callable[[str], int]:
    """Return the parser of a whole number."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()):
            raise InvalidSetting(f"must be a whole number of at least {least}, not {text!r}")
        value = int(text) if len(text) <= len(str(most)) else most + 1
        if not least <= value <= most:
            limit = f"at least {least}" if value < least else f"at most {most}"
            raise InvalidSetting(f"must be a whole number of {limit}, not {text!r}")
        return value

    return parse


def hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of signing agents in a comma-separated text; all of them for `*`."""
    names = tuple(host.strip().lower() for host in text.split(",") if host.strip())
    if not names:
        return ()
    from ingest.verification.signature_agents import signature_agents  # noqa: PLC0415  # off by default

    known = tuple(signature_agents())
    if names == ("*",):
        return known
    if unknown := [host for host in names if host not in known]:
        raise InvalidSetting(f"must be * or some of {', '.join(known)}, not {', '.join(unknown)}")
    return names
