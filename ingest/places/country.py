"""Two-letter code of a country (ISO 3166-1), from an edge network's header or the browser's time zone.

tzdata has the country of each time zone.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from types import MappingProxyType

HEADERS = ("cf-ipcountry", "cloudfront-viewer-country", "x-vercel-ip-country", "x-appengine-country", "x-country-code")
"""Headers in which edge networks name the country of a request."""


def _table(name: str) -> list[list[str]]:
    text = (resources.files("tzdata") / "zoneinfo" / name).read_text("utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


@lru_cache(1)
def codes() -> frozenset[str]:
    return frozenset(code for code, _ in _table("iso3166.tab"))


_MERGED = {"Africa/Asmera": "ER", "Africa/Timbuktu": "ML"}
"""Countries of older names that tzdata links to a zone of another country."""


@lru_cache(1)
def _zones() -> Mapping[str, str]:
    """Return the country of each time zone, also of older names that browsers send, such as Asia/Calcutta."""
    countries = {zone: code for code, _, zone, *_ in _table("zone.tab")}
    links = (line[0].split() for line in _table("tzdata.zi") if line[0].startswith("L "))
    older = {name: countries[zone] for _, zone, name in links if zone in countries and "/" in name}
    return MappingProxyType(older | _MERGED | countries)


def of_time_zone(zone: str | None) -> str | None:
    """Return the country of a time zone (IANA); None for an unknown zone, and for one of no country, such as UTC."""
    return _zones().get(zone or "")


def known(code: str | None) -> str | None:
    """Return a code in capitals; None for one of no country, such as `XX` and, for Tor, `T1`."""
    code = (code or "").strip().upper()
    return code if code in codes() else None


def of_headers(headers: Mapping[str, str]) -> str | None:
    """Return the country that one of HEADERS names. The headers have lower-case names."""
    return next(filter(None, (known(headers.get(name)) for name in HEADERS)), None)
