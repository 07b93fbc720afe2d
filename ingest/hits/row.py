"""A hit and what its user agent and referrer say, into a row of the lake (the columns of `warehouse.schema.HOT`)."""

from functools import lru_cache

import pyarrow as pa

from ingest.classification.user_agent import columns, columns_of_all
from ingest.hits.hit import Hit
from ingest.hits.url import host
from warehouse.schema import HOT, RULED, Row

TRAFFIC, AGENT = (HOT.names.index(name) for name in ("traffic", "agent"))
"""Places in a row."""
CACHED_CHARACTERS_MAX, CACHED_USER_AGENTS = 1_024, 16_384
"""Together they bound the cache: at 16 MiB of user agents in ASCII, at 64 MiB whatever is sent."""


def row(project: str, hit: Hit, source: str, received_us: int) -> Row:
    """The row of one hit. Pure: the same hit gives the same row under one ruleset."""
    agent = hit.user_agent
    of_agent = _cached_columns(agent) if len(agent) <= CACHED_CHARACTERS_MAX else columns(agent)
    return (
        project,
        hit.ts_us,
        hit.path,
        *of_agent,
        hit.referrer,
        host(hit.referrer) if hit.referrer else None,
        hit.utm_source,
        hit.format,
        hit.status,
        source,
        hit.event_id,
        received_us,
    )


def columns_of(user_agents: list[str]) -> pa.Table:
    """What today's rules say of each user agent, as a table of schema `RULED`."""
    rows = [dict(zip(RULED.names, each, strict=True)) for each in columns_of_all(user_agents)]
    return pa.Table.from_pylist(rows, RULED)


_cached_columns = lru_cache(CACHED_USER_AGENTS)(columns)
