"""Table of the hosts and campaigns of AI products in `ai_referrers.toml`: which operator sent a visit."""

import tomllib
from datetime import date
from pathlib import Path
from types import MappingProxyType

import msgspec


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Host of an AI product, and the `utm_source` that the product adds to its links, if it adds one.

    `checked` is the day on which the row was compared with `source`.
    """

    host: str
    operator: str
    source: str
    checked: date
    utm_source: str | None = None


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    product: tuple[Product, ...]


def parse(toml: str) -> tuple[Product, ...]:
    """Return the rows in their order.

    Raises: msgspec.ValidationError for an unknown field, ValueError for a repeated host.
    """
    rows = msgspec.convert(tomllib.loads(toml), _Table).product
    hosts = [row.host for row in rows]
    if repeated := {host for host in hosts if hosts.count(host) > 1}:
        raise ValueError(f"ai_referrers.toml has the host {min(repeated)!r} twice")
    return rows


PRODUCTS = parse((Path(__file__).parent / "ai_referrers.toml").read_text(encoding="utf-8"))
OPERATORS = MappingProxyType({host: row.operator for row in PRODUCTS for host in (row.host, f"www.{row.host}")})
"""Operator of an AI product, by the host of a referrer, as `hits.referrer_host` has it."""
CAMPAIGNS = MappingProxyType({row.utm_source: row.operator for row in PRODUCTS if row.utm_source is not None})
"""Operator of an AI product, by the value of `hits.utm_source`."""
