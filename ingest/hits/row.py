"""A hit and what its user agent and referrer say, into a row of the lake (the columns of `warehouse.schema.HOT`)."""

import pyarrow as pa

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.hits.hit import Hit
from ingest.hits.url import host
from warehouse.schema import CLASSIFICATION, HOT, Row

TRAFFIC, AGENT = (HOT.names.index(name) for name in ("traffic", "agent"))
"""Places in a row."""
_USER_AGENTS = UserAgentCache()


def row(project: str, hit: Hit, source: str, received_us: int) -> Row:
    """The row of one hit. Pure: the same hit gives the same row under one ruleset."""
    return (
        project,
        hit.ts_us,
        hit.path,
        *_USER_AGENTS.columns(hit.user_agent),
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
    """What today's rules say of each user agent, as a table of schema `CLASSIFICATION`."""
    rows = [dict(zip(CLASSIFICATION.names, each, strict=True)) for each in _USER_AGENTS.columns_of_all(user_agents)]
    return pa.Table.from_pylist(rows, CLASSIFICATION)
