"""The settings of an operator, each read once from an environment variable.

The only other setting in the environment is PROMETHEUS_MULTIPROC_DIR, which `server.shared_counters` sets for
prometheus_client, and `metrics` reads.
"""

import difflib
import ipaddress
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path

from api.errors import InvalidSetting
from ingest.hits.body import HITS_MAX
from warehouse.folder import CONTROL, HOT_LOG, JOBS, LAKE, RANGES, RUN, sqlite_url

DATA, DEMO_DATA = "data", "data-demo"
"""Default data folders, relative to the current folder: of all commands but `demo`, and of `demo`."""
UNREADABLE = frozenset("[]%\\=")
"""Characters that a data folder's path must not have: delta-rs 1.6 parses them as patterns or escapes, and DuckDB
parses `=` as a partition."""
PREFIX = "READERSHIP_"
TEST_PREFIX = f"{PREFIX}TEST_"
"""Prefix of the variables that only the tests read."""
NUMBER_MAX = 1_000_000_000
"""Maximum of each number that has no smaller maximum."""
RETENTION_DAYS_MAX = 36_500
JOBS_AT_ONCE_MAX = 256
NO_VARIABLE = frozenset({"environ", "run_secret"})
"""Fields of Settings that have no environment variable."""
LOG_LEVELS = ("debug", "info", "warning", "error")
BASE_URL = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~-]+)*/?")


@dataclass(frozen=True)
class Settings:
    """The settings; the variable of a field is PREFIX and the field's name in capitals."""

    data: Path
    """Data folder."""
    database_url: str
    """Control database, as a SQLAlchemy URL; by default a SQLite file in the data folder."""
    load_every_s: int = 60
    """Maximum time from the acceptance of a hit to its load into the lake, in seconds."""
    load_rows: int = 100_000
    """Number of waiting hits at which they are loaded at once."""
    backlog_rows_max: int = 500_000
    """Maximum number of hits that wait to be loaded, at least HITS_MAX; further posts are answered 503."""
    cache_mib: int = 256
    """Maximum size of the result cache of each server process, in MiB. The block of 1M paths takes 150 MiB or more."""
    beacons_per_minute: int = 600
    """Maximum number of beacons of one address in any 60 seconds; further ones are answered 429."""
    retention_days: int = 0
    """Days until a hit is deleted; 0 for never."""
    jobs_at_once: int = 1
    """Maximum number of agent jobs that one worker works on."""
    job_lease_s: int = 15
    """Lease of an agent job, in seconds: after that time without a heartbeat, another worker takes the job."""
    base_url: str = ""
    """URL of the service behind a proxy, as visitors use it; empty without a proxy."""
    log_level: str = "info"
    """Lowest of LOG_LEVELS that is logged; a request is `info`."""
    job_retention_days: int = 90
    """Days until an archived agent job is deleted; 0 for never."""
    trusted_proxies: str = "127.0.0.1"
    """Addresses and networks whose X-Forwarded-For is trusted, separated by commas; * for all."""

    reverse_dns: bool = False
    """Whether crawlers are verified by forward-confirmed reverse DNS, which needs the network."""
    key_directories: tuple[str, ...] = ()
    """Hosts whose key directories are fetched, to verify the signatures of AI agents."""

    run_secret: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)
    """Key of the hashes of client addresses, shared by the server processes of one service; never stored."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment in which agent jobs look up their secrets."""

    @property
    def hot_log(self) -> Path:
        return self.data / HOT_LOG

    @property
    def control(self) -> Path:
        """Return the file of the control database, unless READERSHIP_DATABASE_URL is set."""
        return self.data / CONTROL

    @property
    def lake(self) -> Path:
        return self.data / LAKE

    @property
    def limits(self) -> Path:
        return self.run / "limits.sqlite"

    @property
    def cache_bytes(self) -> int:
        return self.cache_mib * 1024 * 1024

    @property
    def jobs(self) -> Path:
        """Return the folder that has a folder for each agent job that is not archived."""
        return self.data / JOBS

    @property
    def ranges(self) -> Path:
        """Return the folder of the address lists that `readership ranges refresh` downloaded."""
        return self.data / RANGES

    @property
    def run(self) -> Path:
        """Return the folder of files that only a running service uses: counters, limits, its lock, spilled sorts."""
        return self.data / RUN


def read(environ: Mapping[str, str], data: Path | None = None, default: str = DATA) -> Settings:
    """Return the settings of an environment. The data folder is `data`, else READERSHIP_DATA, else `default`.

    Raises:
        InvalidSetting: a variable is unknown or its value is not valid; the message names the variable.
    """
    _refuse_unknown(environ)
    if environ.get("READERSHIP_DATA") == "":
        raise InvalidSetting("READERSHIP_DATA is empty: name a folder, or remove the variable")
    folder = (data or Path(environ.get("READERSHIP_DATA", default))).absolute()
    if unreadable := UNREADABLE.intersection(str(folder)):
        raise InvalidSetting(
            f"the path of the data folder {folder} must not contain {' '.join(sorted(unreadable))}: choose another"
        )
    return Settings(
        data=folder,
        database_url=_database_url(environ, folder),
        load_every_s=_number(environ, "LOAD_EVERY_S", Settings.load_every_s),
        load_rows=_number(environ, "LOAD_ROWS", Settings.load_rows),
        backlog_rows_max=_number(environ, "BACKLOG_ROWS_MAX", Settings.backlog_rows_max, least=HITS_MAX),
        cache_mib=_number(environ, "CACHE_MIB", Settings.cache_mib),
        beacons_per_minute=_number(environ, "BEACONS_PER_MINUTE", Settings.beacons_per_minute),
        retention_days=_number(environ, "RETENTION_DAYS", Settings.retention_days, 0, RETENTION_DAYS_MAX),
        jobs_at_once=_number(environ, "JOBS_AT_ONCE", Settings.jobs_at_once, 0, JOBS_AT_ONCE_MAX),
        job_lease_s=_number(environ, "JOB_LEASE_S", Settings.job_lease_s),
        base_url=_base_url(environ),
        log_level=_log_level(environ),
        job_retention_days=_number(environ, "JOB_RETENTION_DAYS", Settings.job_retention_days, 0, RETENTION_DAYS_MAX),
        environ=dict(environ),  # `os.environ` cannot be sent to a server process
        trusted_proxies=_trusted_proxies(environ),
        reverse_dns=_switch(environ, "REVERSE_DNS"),
        key_directories=hosts_of(environ.get("READERSHIP_KEY_DIRECTORIES", ""), "READERSHIP_KEY_DIRECTORIES"),
    )


def hosts_of(text: str, name: str) -> tuple[str, ...]:
    """Return the hosts of a list that is separated by commas; all signing agents for `*`. `name` is for the message.

    Raises:
        InvalidSetting: a host is that of no signing agent.
    """
    hosts = tuple(host.strip().lower() for host in text.split(",") if host.strip())
    if not hosts:
        return ()
    from ingest.verification.signature_agents import signature_agents  # noqa: PLC0415  # off by default

    known = tuple(signature_agents())
    if hosts == ("*",):
        return known
    if unknown := [host for host in hosts if host not in known]:
        raise InvalidSetting(f"{name} must be * or some of {', '.join(known)}, not {', '.join(unknown)}")
    return hosts


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    """Raise InvalidSetting for a variable with PREFIX that is no setting: it is a typing error."""
    known = sorted(each.name.upper() for each in fields(Settings) if each.name not in NO_VARIABLE)
    for name in sorted(environ):
        word = name.removeprefix(PREFIX)
        if word == name or name.startswith(TEST_PREFIX) or word in known:
            continue
        nearest = difflib.get_close_matches(word, known, n=1)  # without the prefix, which would make all names similar
        names = f"the settings are {', '.join(PREFIX + each for each in known)}"
        raise InvalidSetting(
            f"there is no setting {name}: " + (f"did you mean {PREFIX}{nearest[0]}?" if nearest else names)
        )


def _base_url(environ: Mapping[str, str]) -> str:
    """Return the URL without a trailing slash; an empty string if it is not set."""
    text = environ.get("READERSHIP_BASE_URL")
    if text is None:
        return Settings.base_url
    if not BASE_URL.fullmatch(text):  # the message does not quote the URL, which may contain a password
        raise InvalidSetting(
            "READERSHIP_BASE_URL must be a URL such as https://example.com/stats, without user, query and fragment"
        )
    return text.rstrip("/")


def _log_level(environ: Mapping[str, str]) -> str:
    level = environ.get("READERSHIP_LOG_LEVEL", Settings.log_level)
    if level not in LOG_LEVELS:
        raise InvalidSetting(f"READERSHIP_LOG_LEVEL must be one of {', '.join(LOG_LEVELS)}, not {level!r}")
    return level


def _trusted_proxies(environ: Mapping[str, str]) -> str:
    """Return the addresses and networks in uvicorn's form.

    Any other word is refused: uvicorn would parse it as the name of a Unix socket, and trust no proxy.
    """
    text = environ.get("READERSHIP_TRUSTED_PROXIES", Settings.trusted_proxies)
    for each in text.split(","):
        try:
            if each.strip() not in {"", "*"}:
                ipaddress.ip_network(each.strip())
        except ValueError as error:
            raise InvalidSetting(
                f"READERSHIP_TRUSTED_PROXIES must be IP addresses, networks such as 10.0.0.0/8, or *: {error}"
            ) from None
    return text


def _database_url(environ: Mapping[str, str], data: Path) -> str:
    url = environ.get("READERSHIP_DATABASE_URL")
    if url is None:
        return sqlite_url(data / CONTROL)
    import sqlalchemy as sa  # noqa: PLC0415  # takes 0.2 s to import, and most commands use the default

    try:
        sa.make_url(url).get_dialect().import_dbapi()
    except (
        sa.exc.ArgumentError,
        ImportError,
    ) as error:  # the message does not quote the URL, which may contain a password
        raise InvalidSetting(
            f"READERSHIP_DATABASE_URL is not a SQLAlchemy URL with an installed driver: {error}"
        ) from None
    return url


def _switch(environ: Mapping[str, str], name: str) -> bool:
    text = environ.get(f"READERSHIP_{name}", "off")
    if text not in {"on", "off"}:
        raise InvalidSetting(f"READERSHIP_{name} must be on or off, not {text!r}")
    return text == "on"


def _number(environ: Mapping[str, str], name: str, default: int, least: int = 1, most: int = NUMBER_MAX) -> int:
    text = environ.get(f"READERSHIP_{name}", str(default))
    if not (text.isascii() and text.isdigit()):
        raise InvalidSetting(f"READERSHIP_{name} must be a whole number of at least {least}, not {text!r}")
    number = int(text) if len(text) <= len(str(most)) else most + 1
    if not least <= number <= most:
        limit = f"at least {least}" if number < least else f"at most {most}"
        raise InvalidSetting(f"READERSHIP_{name} must be a whole number of {limit}, not {text!r}")
    return number
