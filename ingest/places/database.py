"""Country of an address, from a MaxMind DB file of the owner, such as GeoLite2-Country or DB-IP Lite."""

import shutil
from functools import lru_cache
from tempfile import NamedTemporaryFile
from typing import Any

import maxminddb

from ingest.places import country


@lru_cache(1)
def _reader(file: str) -> maxminddb.Reader:
    """Return the reader of a copy of the file, which it maps: a mapped file that is truncated kills the process.

    From a file in memory, a look-up takes 10 µs instead of 0.5.
    """
    with NamedTemporaryFile(suffix=".mmdb") as copy:
        shutil.copyfile(file, copy.name)
        return maxminddb.open_database(copy.name)


def require_countries(file: str) -> None:
    """Check that a file is a database of countries.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no MaxMind DB file, or no network in it has a country.
    """
    try:
        reader = _reader(file)
        if not any(_code(record) for _, record in reader):
            raise ValueError(f"{file} has no countries, but is of type {reader.metadata().database_type}")
    except maxminddb.InvalidDatabaseError as error:
        raise ValueError(f"{file} is not a MaxMind DB file, or it is damaged") from error


def of_address(file: str, address: str | None) -> str | None:
    """Return the code of the country of an address in a file; None if it is unknown."""
    try:
        return _code(_reader(file).get(address)) if address else None
    except (ValueError, maxminddb.InvalidDatabaseError):  # not an address, or IPv6 where the file has only IPv4
        return None


def _code(record: Any) -> str | None:
    """Return the code of a record: of MaxMind and DB-IP a record itself, of IPinfo a text or `country_code`."""
    fields = record if isinstance(record, dict) else {}
    of = fields.get("country_code") or fields.get("country")
    code = of.get("iso_code") if isinstance(of, dict) else of
    return country.known(code) if isinstance(code, str) else None
