"""Channels by which people come to a page, from the tables `channels.toml` and `ai_referrers.toml`."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import msgspec

from ingest.channels import ai_referrers

PAID, EMAIL, AI, SEARCH, REFERRAL, DIRECT = "Paid", "Email", "AI assistants", "Search", "Referral", "Direct"
"""Channels that the code names."""
_IS_PAID = re.compile(r"(?<![a-z])(?<!(?<![a-z])no[nt][^a-z])(?:cp[a-z](?![a-z])|ppc|paid|retargeting)").search
"""Media with a word such as `cpc_brand`, `social-paid` and `non_brand_paid`, but not `cpanel` and `non-paid`."""
_GOOGLE = re.compile(r"(?:(?:www|m|images|news|cse)\.)?google\.(?:com|(?:com?\.)?[a-z]{2}|cat)")
_CACHED = 4_096


class Channel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `channels.toml`, which has the meaning of the fields."""

    name: str
    source: tuple[str, ...]
    sites: frozenset[str] = frozenset()
    campaigns: frozenset[str] = frozenset()
    media: frozenset[str] = frozenset()
    clicks: tuple[str, ...] = ()


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    channel: tuple[Channel, ...]


CHANNELS = msgspec.convert(tomllib.loads((Path(__file__).parent / "channels.toml").read_text("utf-8")), _Table).channel
"""Channels in the order in which they are tried."""
NAMES = (*(each.name for each in CHANNELS), DIRECT)
CLICKS = MappingProxyType({click: each.name for each in CHANNELS for click in each.clicks})
"""Channels by the names of the query parameters that advertisements, and some sites, add to their links."""
_SITES = MappingProxyType(
    {f"{mail}.{site}": EMAIL for mail in ("mail", "email", "webmail") for site in CHANNELS[NAMES.index(SEARCH)].sites}
    | {site: each.name for each in reversed(CHANNELS) for site in each.sites}
    | dict.fromkeys(ai_referrers.OPERATORS, AI)
)
_CAMPAIGNS = MappingProxyType(
    {value: each.name for each in reversed(CHANNELS) for value in each.campaigns}
    | dict.fromkeys(ai_referrers.CAMPAIGNS, AI)
)
_MEDIA = MappingProxyType({value: each.name for each in reversed(CHANNELS) for value in each.media})


@lru_cache(_CACHED)
def channel(host: str | None, utm_source: str | None, utm_medium: str | None, click: str | None) -> str:
    """Return the channel of a person's view: the first of NAMES that a parameter has, or else the referrer's host.

    `click` is one of CLICKS, or None. Views within a site have no channel: see `of_referrer`.
    """
    campaign, medium = (utm_source or "").lower().strip(), (utm_medium or "").lower().strip()
    of_click = CLICKS.get(click or "")
    if of_click == PAID or _IS_PAID(medium):
        return PAID
    tagged = {_MEDIA.get(medium), _CAMPAIGNS.get(campaign), _of_host(campaign)}
    of_tags = next((name for name in NAMES if name in tagged), None)
    of_link = of_tags or _of_host(host) or (None if host else of_click)
    return of_link or (REFERRAL if host or campaign or medium else DIRECT)


def _of_host(host: str | None) -> str | None:
    """Return the channel of a host, or else of the nearest domain above it."""
    if host and _GOOGLE.fullmatch(host):
        return SEARCH
    while host and host not in _SITES:
        host = host.partition(".")[2]
    return _SITES.get(host or "")


def of_referrer(host: str | None, own: frozenset[str]) -> str | None:
    """Return the channel of a referrer's host; None for a view within the site, which has the hosts `own`."""
    if host is not None and host.removeprefix("www.") in _without_www(own):
        return None
    return channel(host, None, None, None)


@lru_cache(_CACHED)
def _without_www(hosts: frozenset[str]) -> frozenset[str]:
    return frozenset(each.removeprefix("www.") for each in hosts)
