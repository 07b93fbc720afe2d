"""Rows of the lake (`warehouse.schema.HOT`): a hit, with the columns derived from its user agent and referrer."""

import pyarrow as pa

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.hits.evidence import hints
from ingest.hits.hit import Hit
from ingest.hits.url import host
from warehouse.schema import CLASSIFICATION, HOT, Row

TRAFFIC, AGENT = (HOT.names.index(name) for name in ("traffic", "agent"))
"""Indexes of the columns `traffic` and `agent` in a row."""
_USER_AGENTS = UserAgentCache()


def row(project: str, hit: Hit, source: str, received_us: int) -> Row:
    """Return the row of one hit. The same hit gives the same row under one ruleset."""
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
        None,
        None,
        hints(hit.evidence) if source == "server" else None,
    )


def classify_user_agents(user_agents: list[str]) -> pa.Table:
    """Return the classification of each user agent by the current rules, as a table of schema `CLASSIFICATION`."""
    rows = [dict(zip(CLASSIFICATION.names, each, strict=True)) for each in _USER_AGENTS.columns_of_all(user_agents)]
    return pa.Table.from_pylist(rows, CLASSIFICATION)
