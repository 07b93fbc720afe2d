"""What an operator may set, each by one environment variable.

Nothing else reads the environment but `metrics`: PROMETHEUS_MULTIPROC_DIR is its library's own word, which
`shared_counters` sets.
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
from warehouse.folder import CONTROL, HOT_LOG, JOBS, LAKE, RUN, sqlite_url

DATA, DEMO_DATA = "data", "data-demo"
"""Default data folders, in the current folder; the second one of `readership demo`."""
UNREADABLE = frozenset("[]%\\=")
"""What delta-rs 1.6 takes for a pattern or an escape in the path of a table, and DuckDB for a partition."""
PREFIX = "READERSHIP_"
TEST_PREFIX = f"{PREFIX}TEST_"
"""Prefix of the variables that only the tests read."""
NUMBER_MAX = 1_000_000_000
"""Upper limit of each number that has no lower one of its own."""
RETENTION_DAYS_MAX = 36_500
JOBS_AT_ONCE_MAX = 256
NO_VARIABLE = frozenset({"environ", "run_secret"})
"""Fields of Settings that have no environment variable."""
LOG_LEVELS = ("debug", "info", "warning", "error")
BASE_URL = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~-]+)*/?")


@dataclass(frozen=True)
class Settings:
    """One line a setting: its unit, its variable and its default. Each variable is PREFIX and the field's name."""

    data: Path  # READERSHIP_DATA, ./data
    database_url: str  # READERSHIP_DATABASE_URL, a SQLite file in `data`
    load_every_s: int = 60  # READERSHIP_LOAD_EVERY_S: a hit is in the lake at the latest after so long
    load_rows: int = 100_000  # READERSHIP_LOAD_ROWS: or as soon as so many wait
    backlog_rows_max: int = (
        500_000  # READERSHIP_BACKLOG_ROWS_MAX: hits waiting to be loaded; past it 503; at least a post's
    )
    cache_mib: int = 128  # READERSHIP_CACHE_MIB: memory for report results in each HTTP process, in MiB
    beacons_per_minute: int = 600  # READERSHIP_BEACONS_PER_MINUTE: of one address; past it 429
    retention_days: int = 0  # READERSHIP_RETENTION_DAYS: older hits are removed; 0 keeps all
    jobs_at_once: int = 1  # READERSHIP_JOBS_AT_ONCE: agent jobs that one process works on; 0 for none in it
    job_lease_s: int = 15  # READERSHIP_JOB_LEASE_S: a worker that is silent for so long loses its job to another
    base_url: str = ""  # READERSHIP_BASE_URL: where visitors reach the service behind a proxy; none
    log_level: str = "info"  # READERSHIP_LOG_LEVEL: the least of LOG_LEVELS that is logged; a request is `info`
    job_retention_days: int = 90  # READERSHIP_JOB_RETENTION_DAYS: archived jobs are removed after so many; 0 keeps all
    trusted_proxies: str = "127.0.0.1"  # READERSHIP_TRUSTED_PROXIES: whose X-Forwarded-For is believed; * for any

    run_secret: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)  # hashes addresses
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  # where agent jobs find secrets by their names

    @property
    def hot_log(self) -> Path:
        return self.data / HOT_LOG

    @property
    def control(self) -> Path:
        """The control database, unless READERSHIP_DATABASE_URL names another."""
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
        """A folder for each agent job that is not archived."""
        return self.data / JOBS

    @property
    def run(self) -> Path:
        """What is of use only while the service runs: spilled sorts, counters, limits."""
        return self.data / RUN


def read(environ: Mapping[str, str], data: Path | None = None, default: str = DATA) -> Settings:
    """Return the settings of an environment. The data folder is `data`, else READERSHIP_DATA, else `default`.

    Raises:
        InvalidSetting: naming the variable.
    """
    _refuse_unknown(environ)
    if environ.get("READERSHIP_DATA") == "":
        raise InvalidSetting("READERSHIP_DATA is empty: name a folder, or remove the variable")
    folder = (data or Path(environ.get("READERSHIP_DATA", default))).absolute()
    if found := UNREADABLE.intersection(str(folder)):
        raise InvalidSetting(f"the data folder {folder} has {' '.join(sorted(found))} in its path: name another")
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
        environ=dict(environ),  # `os.environ` cannot be sent to a worker process
        trusted_proxies=_trusted_proxies(environ),
    )


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    """Raise InvalidSetting for a variable with our prefix that is no setting: it is a typing error."""
    known = sorted(each.name.upper() for each in fields(Settings) if each.name not in NO_VARIABLE)
    for name in sorted(environ):
        word = name.removeprefix(PREFIX)
        if word == name or name.startswith(TEST_PREFIX) or word in known:
            continue
        nearest = difflib.get_close_matches(word, known, n=1)  # without the prefix, which makes all names alike
        names = f"the settings are {', '.join(PREFIX + each for each in known)}"
        raise InvalidSetting(
            f"there is no setting {name}: " + (f"did you mean {PREFIX}{nearest[0]}?" if nearest else names)
        )


def _base_url(environ: Mapping[str, str]) -> str:
    """Return the URL without a slash at its end; empty if it is not set."""
    text = environ.get("READERSHIP_BASE_URL")
    if text is None:
        return Settings.base_url
    if not BASE_URL.fullmatch(text):  # the message does not show it: it may contain a password
        raise InvalidSetting(
            "READERSHIP_BASE_URL is not a URL such as https://example.com/stats, without user, query and fragment"
        )
    return text.rstrip("/")


def _log_level(environ: Mapping[str, str]) -> str:
    level = environ.get("READERSHIP_LOG_LEVEL", Settings.log_level)
    if level not in LOG_LEVELS:
        raise InvalidSetting(f"READERSHIP_LOG_LEVEL is one of {', '.join(LOG_LEVELS)}, not {level!r}")
    return level


def _trusted_proxies(environ: Mapping[str, str]) -> str:
    """Return the addresses and networks as uvicorn takes them. It takes any other word for the name of a Unix socket,
    and then trusts nobody."""
    text = environ.get("READERSHIP_TRUSTED_PROXIES", Settings.trusted_proxies)
    for each in text.split(","):
        try:
            if each.strip() not in {"", "*"}:
                ipaddress.ip_network(each.strip())
        except ValueError as error:
            raise InvalidSetting(
                f"READERSHIP_TRUSTED_PROXIES takes IP addresses, networks such as 10.0.0.0/8, or *: {error}"
            ) from None
    return text


def _database_url(environ: Mapping[str, str], data: Path) -> str:
    url = environ.get("READERSHIP_DATABASE_URL")
    if url is None:
        return sqlite_url(data / CONTROL)
    import sqlalchemy as sa  # noqa: PLC0415  # half of a command's time to begin, and most name no database

    try:
        sa.make_url(url).get_dialect().import_dbapi()
    except (sa.exc.ArgumentError, ImportError) as error:  # its words, not the URL, which may hold a password
        raise InvalidSetting(f"READERSHIP_DATABASE_URL names no database that there is a driver for: {error}") from None
    return url


def _number(environ: Mapping[str, str], name: str, default: int, least: int = 1, most: int = NUMBER_MAX) -> int:
    text = environ.get(f"READERSHIP_{name}", str(default))
    if not (text.isascii() and text.isdigit()):
        raise InvalidSetting(f"READERSHIP_{name} is a whole number of at least {least}, not {text!r}")
    number = int(text) if len(text) <= len(str(most)) else most + 1
    if not least <= number <= most:
        limit = f"at least {least}" if number < least else f"at most {most}"
        raise InvalidSetting(f"READERSHIP_{name} is a whole number of {limit}, not {text!r}")
    return number
