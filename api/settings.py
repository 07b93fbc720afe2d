"""The settings of an operator, each read once from an environment variable.

Two modules set variables that libraries read: `server.shared_counters` sets PROMETHEUS_MULTIPROC_DIR, which `metrics`
also reads, and `server.memory` sets those of the allocators.
"""

import difflib
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from shlex import quote

from api import environment
from api.errors import InvalidSetting
from ingest.hits.body import HITS_MAX
from ingest.hits.hit import NEW_VALUES_PER_DAY
from warehouse.folder import CONTROL, HOT_LOG, JOBS, LAKE, RANGES, RUN, read_moved, refuse_moved
from warehouse.hotlog.connection import HotLogPlace, server_of
from warehouse.lake.roots import Root

DATA, DEMO_DATA = "data", "data-demo"
"""Default data folders, relative to the current folder: of all commands but `demo`, and of `demo`."""
UNREADABLE = frozenset("[]%\\=")
"""Characters that a data folder's path must not have: delta-rs 1.6 parses them as patterns or escapes, and DuckDB
parses `=` as a partition."""
PREFIX = "READERSHIP_"
TEST_PREFIX = f"{PREFIX}TEST_"
"""Prefix of the variables that only the tests read."""
STALE_LOADS = 5
"""Number of load intervals, of a minute or more, after which a hit that still waits in the hot log is a fault."""
RETENTION_DAYS_MAX = 36_500
JOBS_AT_ONCE_MAX = 256
NO_VARIABLE = frozenset({"environ", "run_secret"})
"""Fields of Settings that have no environment variable."""


@dataclass(frozen=True)
class Settings:
    """The settings; the variable of a field is PREFIX and the field's name in capitals."""

    data: Path
    """Data folder."""
    database_url: str = field(repr=False)
    """URL of the control database; by default a SQLite file in the data folder."""
    lake: Root
    """Root of the lake: a folder in the data folder, or a prefix in an object store."""
    load_every_s: int = 60
    """Age of the oldest waiting hit at which the waiting hits are loaded into the lake, in seconds."""
    load_rows: int = 100_000
    """Number of waiting hits at which the hits are loaded, whatever their age."""
    backlog_rows_max: int = 500_000
    """Maximum number of hits that wait to be loaded, at least HITS_MAX; further posts are answered 503."""
    cache_mib: int = 256
    """Maximum size of the caches of each server process, in MiB. A block of views (see `warehouse.blocks`) of 1M paths
    takes 150 MiB or more."""
    lake_cache_mib: int = 4096
    """Maximum size of the cache of files in the data folder, for a lake in an object store, in MiB."""
    beacons_per_minute: int = 600
    """Maximum number of beacons of one address in any 60 seconds; further ones are answered 429."""
    new_values_per_day: int = NEW_VALUES_PER_DAY
    """Maximum number of new paths, referring hosts and values of a query parameter each that a project takes from hits
    without a key in a day; further ones are stored as `(other)`."""
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
    ray: str = ""
    """Address of the Ray cluster in which commands run their workers; empty for this machine."""

    run_secret: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)
    """Key of the hashes of client addresses, shared by the server processes of one service; never stored."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment in which agent jobs look up their secrets."""

    @property
    def hot_log(self) -> HotLogPlace:
        """Return the place of the hot log: the file in the data folder, or else the database if its driver is psycopg.

        A file that was moved to the database is not used any more.
        """
        file = self.data / HOT_LOG
        is_here = file.exists() and ((moved := read_moved(self.data)) is None or moved.database is None)
        return file if is_here else server_of(self.database_url) or file

    @property
    def command(self) -> str:
        """Return the start of a command of this program over this data folder, quoted for a shell."""
        program = Path(sys.executable).with_name("readership")
        return f"{quote(str(program)) if program.exists() else program.name} --data {quote(str(self.data))}"

    @property
    def refresh_lists(self) -> str:
        """Return the advice of a warning about old address lists, which a service reads at its start only."""
        return f"run {self.command} ranges refresh, and restart the service"

    @property
    def control(self) -> Path:
        """Return the file of the control database, unless READERSHIP_DATABASE_URL is set."""
        return self.data / CONTROL

    @property
    def limits(self) -> Path:
        return self.run / "limits.sqlite"

    @property
    def cache_bytes(self) -> int:
        """Return the maximum size of the cache of results."""
        return self.cache_mib * 1024 * 1024 - self.user_agents_bytes

    @property
    def user_agents_bytes(self) -> int:
        """Return the maximum size of the cache of user agents: an eighth of the setting."""
        return self.cache_mib * 1024 * 1024 // 8

    @property
    def late_s(self) -> int:
        """Return the age at which a hit that waits to be loaded is a fault, in seconds."""
        return STALE_LOADS * max(self.load_every_s, 60)

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
        """Return the folder of the files that exist only for a running service: counters, limits, its lock, spilled
        sorts."""
        return self.data / RUN


def read(
    environ: Mapping[str, str], data: Path | None = None, default: str = DATA, *, is_moving: bool = False
) -> Settings:
    """Return the settings of an environment. The data folder is `data`, else READERSHIP_DATA, else `default`.

    `is_moving`: the settings are for a move, and may name the old places of data that was moved.

    Raises:
        InvalidSetting: a variable is unknown or its value is not valid; the message names the variable.
        DataMoved: a store of the data folder was moved, and the settings do not name its new place.
    """
    _refuse_unknown(environ)
    if environ.get("READERSHIP_DATA") == "":
        raise InvalidSetting("READERSHIP_DATA is empty: name a folder, or remove the variable")
    folder = (data or Path(environ.get("READERSHIP_DATA", default))).absolute()
    _refuse_unreadable(folder)
    lake_cache_mib = environment.number(environ, "LAKE_CACHE_MIB", Settings.lake_cache_mib)
    url, lake = environment.database_url(environ, folder), environment.lake(environ, folder, lake_cache_mib)
    if not is_moving:
        refuse_moved(folder, has_database=server_of(url) is not None, has_lake=lake.uri is not None)
    return Settings(
        data=folder,
        database_url=url,
        lake=lake,
        load_every_s=environment.number(environ, "LOAD_EVERY_S", Settings.load_every_s),
        load_rows=environment.number(environ, "LOAD_ROWS", Settings.load_rows),
        backlog_rows_max=environment.number(environ, "BACKLOG_ROWS_MAX", Settings.backlog_rows_max, least=HITS_MAX),
        cache_mib=environment.number(environ, "CACHE_MIB", Settings.cache_mib),
        lake_cache_mib=lake_cache_mib,
        beacons_per_minute=environment.number(environ, "BEACONS_PER_MINUTE", Settings.beacons_per_minute),
        new_values_per_day=environment.number(environ, "NEW_VALUES_PER_DAY", Settings.new_values_per_day),
        retention_days=environment.number(environ, "RETENTION_DAYS", Settings.retention_days, 0, RETENTION_DAYS_MAX),
        jobs_at_once=environment.number(environ, "JOBS_AT_ONCE", Settings.jobs_at_once, 0, JOBS_AT_ONCE_MAX),
        job_lease_s=environment.number(environ, "JOB_LEASE_S", Settings.job_lease_s),
        base_url=environment.base_url(environ),
        log_level=environment.log_level(environ, Settings.log_level),
        job_retention_days=environment.number(
            environ, "JOB_RETENTION_DAYS", Settings.job_retention_days, 0, RETENTION_DAYS_MAX
        ),
        environ=dict(environ),  # `os.environ` cannot be sent to a server process
        trusted_proxies=environment.trusted_proxies(environ, Settings.trusted_proxies),
        reverse_dns=environment.switch(environ, "REVERSE_DNS"),
        key_directories=hosts_of(environ.get("READERSHIP_KEY_DIRECTORIES", ""), "READERSHIP_KEY_DIRECTORIES"),
        ray=environment.ray(environ),
    )


def _refuse_unreadable(folder: Path) -> None:
    """Raise InvalidSetting if delta-rs, which resolves symbolic links, or DuckDB cannot read files in a data folder."""
    for name, path in (("data folder", str(folder)), ("lake", os.path.realpath(folder / LAKE))):
        if any("\ud800" <= character <= "\udfff" for character in path):  # bytes that are not UTF-8
            raise InvalidSetting(f"the path of the {name} {path!a} must be UTF-8: choose another")
        if unreadable := UNREADABLE.intersection(path):
            characters = " ".join(sorted(unreadable))
            raise InvalidSetting(f"the path of the {name} {path} must not contain {characters}: choose another")


def hosts_of(text: str, name: str) -> tuple[str, ...]:
    """Return the hosts in a comma-separated text; the hosts of all signing agents for `*`.

    `name` is the name of the setting in error messages.

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
    """Raise InvalidSetting for a variable with PREFIX that is no setting, which is a typing error."""
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
