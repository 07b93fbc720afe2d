"""The settings of an operator, each declared once: its parser, default and meaning.

`read`, `readership settings` and the table in docs/running.md derive from the fields of `Settings`. Two modules set
variables that libraries read: `server.serve` sets PROMETHEUS_MULTIPROC_DIR, which `metrics` also reads, and
`server.memory` sets the variables of the allocators.
"""

import difflib
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from api import environment
from api.errors import InvalidSetting
from ingest.hits.body import HITS_MAX
from ingest.hits.hit import NEW_VALUES_PER_DAY
from warehouse.errors import InvalidRoot
from warehouse.folder import CONTROL, HOT_LOG, JOBS, LAKE, RANGES, RUN, read_moved, refuse_moved, sqlite_url
from warehouse.hotlog.connection import HotLogPlace, server_of
from warehouse.lake import roots
from warehouse.lake.roots import LocalPath, Root

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

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an operator: its meaning, in Markdown, its default for a reader, and the parser of its variable.

    A place has no parser here, because its default depends on the data folder.
    """

    meaning: str
    default: str
    parse: Callable[[str], Any] | None = None


def _setting(default: Any, parse: Callable[[str], Any], meaning: str) -> Any:
    shown = {"()": "none", "": "none", "False": "off", "True": "on"}.get(str(default), str(default))
    return field(default=default, metadata={"setting": Setting(meaning, shown, parse)})


def _number(default: int, meaning: str, least: int = 1, most: int = environment.NUMBER_MAX) -> Any:
    return _setting(default, environment.number(least, most), meaning)


@dataclass(frozen=True)
class Settings:
    """The settings; the variable of a field is PREFIX and the field's name in capitals."""

    data: Path = field(metadata={"setting": Setting("data folder", "`./data`")})
    database_url: str = field(
        metadata={"setting": Setting("control database, `sqlite:///PATH` or `postgresql://...`", "SQLite")}, repr=False
    )
    lake: Root = field(
        metadata={"setting": Setting("root of the lake in an object store, such as `s3://bucket/prefix`", "a folder")}
    )
    lake_cache_mib: int = _number(4096, "maximum size of the cached files of a lake in an object store, in MiB")
    load_every_s: int = _number(60, "age of the oldest waiting hit at which the waiting hits are loaded, in seconds")
    load_rows: int = _number(100_000, "number of waiting hits at which the hits are loaded, whatever their age")
    backlog_rows_max: int = _number(
        500_000, "maximum number of waiting hits; further posts are answered 503 and not stored", HITS_MAX
    )
    cache_mib: int = _number(128, "maximum size of the [caches](#caches) of each server process, in MiB")
    beacons_per_minute: int = _number(600, "maximum number of beacons of one address in any 60 seconds")
    new_values_per_day: int = _number(
        NEW_VALUES_PER_DAY, "maximum number of [new values](#strangers) that beacons add to a project in a UTC day"
    )
    retention_days: int = _number(0, "days until hits and errors are deleted; 0 for never", 0, RETENTION_DAYS_MAX)
    jobs_at_once: int = _number(1, "maximum number of agent jobs of one worker; 0 for none", 0, JOBS_AT_ONCE_MAX)
    job_lease_s: int = _number(15, "seconds without a heartbeat after which another worker takes over an agent job")
    job_retention_days: int = _number(
        90, "days until an archived agent job is deleted; 0 for never", 0, RETENTION_DAYS_MAX
    )
    base_url: str = _setting(
        "", environment.base_url, "URL of the service behind a proxy, such as `https://example.com/stats`"
    )
    log_level: str = _setting(
        "info", environment.log_level, f"lowest level that is logged: {', '.join(environment.LOG_LEVELS)}"
    )
    country_header: str = _setting(
        "",
        environment.header_name,
        "header in which your edge network names the visitor's country, such as `CF-IPCountry`; set it only if nobody"
        " can reach the service past that network",
    )
    country_database: str = _setting(
        "",
        environment.country_database,
        "MaxMind DB file with the countries of addresses, such as `/var/lib/GeoIP/GeoLite2-Country.mmdb`",
    )
    price_per_gb: str = _setting(
        "", environment.price, "price of a GB that your server sends, such as `0.09 EUR`, for the page *Cost*"
    )
    trusted_proxies: str = _setting(
        "127.0.0.1", environment.trusted_proxies, "addresses and networks whose X-Forwarded-For is trusted; `*` for all"
    )
    reverse_dns: bool = _setting(False, environment.switch, "`on` verifies crawlers by reverse DNS, too")  # noqa: FBT003
    visitors: bool = _setting(True, environment.switch, "`off` counts no [visitors](privacy.md#visitors)")  # noqa: FBT003
    key_directories: tuple[str, ...] = _setting(
        (), environment.hosts, "hosts from which the keys of signing agents are fetched; `*` for all known ones"
    )
    ray: str = _setting("", environment.ray, "Ray cluster of commands: `auto`, `HOST:PORT` or `ray://HOST:PORT`")
    run_secret: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)
    """Key of the hashes of client addresses, shared by the server processes of one service; never stored."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment in which agent jobs look up their secrets."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings without the environment, which a child process inherits, and which may have megabytes."""
        return {**self.__dict__, "environ": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, environ=dict(os.environ))

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


SETTINGS: Mapping[str, Setting] = {
    each.name: each.metadata["setting"] for each in fields(Settings) if "setting" in each.metadata
}
"""Settings by the name of their field."""


def variable(name: str) -> str:
    return PREFIX + name.upper()


def parsed(name: str, text: str, parse: Callable[[str], Value]) -> Value:
    """Return the value of a variable or an option. Raises InvalidSetting with the name of the variable."""
    try:
        return parse(text)
    except (InvalidSetting, InvalidRoot) as error:
        raise InvalidSetting(f"{name} {error}") from None


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

    def value(name: str, parse: Callable[[str], Any], default: Any) -> Any:
        text = environ.get(variable(name))
        return default if text is None else parsed(variable(name), text, parse)

    values = {name: value(name, each.parse, getattr(Settings, name)) for name, each in SETTINGS.items() if each.parse}
    open_remote = partial(roots.open_remote, local=folder / LAKE, cache_bytes=values["lake_cache_mib"] * 1024 * 1024)
    url = value("database_url", environment.database_url, sqlite_url(folder / CONTROL))
    lake: Root = value("lake", open_remote, LocalPath(folder / LAKE))
    if not is_moving:
        refuse_moved(folder, has_database=server_of(url) is not None, has_lake=lake.uri is not None)
    return Settings(folder, url, lake, **values, environ=dict(environ))


def _refuse_unreadable(folder: Path) -> None:
    """Raise InvalidSetting if delta-rs, which resolves symbolic links, or DuckDB cannot read files in a data folder."""
    for name, path in (("data folder", str(folder)), ("lake", os.path.realpath(folder / LAKE))):
        if any("\ud800" <= character <= "\udfff" for character in path):  # bytes that are not UTF-8
            raise InvalidSetting(f"the path of the {name} {path!a} must be UTF-8: choose another")
        if unreadable := UNREADABLE.intersection(path):
            characters = " ".join(sorted(unreadable))
            raise InvalidSetting(f"the path of the {name} {path} must not contain {characters}: choose another")


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    """Raise InvalidSetting for a variable with PREFIX that is no setting, which is a typing error."""
    known = sorted(map(str.upper, SETTINGS))
    for name in sorted(environ):
        word = name.removeprefix(PREFIX)
        if word == name or name.startswith(TEST_PREFIX) or word in known:
            continue
        nearest = difflib.get_close_matches(word, known, n=1)  # without the prefix, which would make all names similar
        names = f"the settings are {', '.join(PREFIX + each for each in known)}"
        raise InvalidSetting(
            f"there is no setting {name}: " + (f"did you mean {PREFIX}{nearest[0]}?" if nearest else names)
        )
