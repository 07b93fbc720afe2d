"""All that a user agent says of who reads: the one place that knows both of its parsers.

Without Arrow, so that a process which tells user agents apart and does nothing else loads it soon.
"""

from collections.abc import Sequence
from functools import lru_cache

from ingest.classification.classifier import RULESET, Classification, read_all
from ingest.classification.device import Device
from ingest.classification.pool import Kind

Reader = tuple[str | None, ...]
"""All that a user agent says, and itself."""
_AFTER_ITSELF = 3


def columns(user_agent: str) -> Reader:
    """The columns from `traffic` to `device`: those of `warehouse.schema.RULED`, in its order."""
    return columns_of_all([user_agent])[0]


def columns_of_all(user_agents: Sequence[str]) -> list[Reader]:
    """Of each, which takes less of many at once."""
    return [
        (*kind[:-_AFTER_ITSELF], user_agent, *kind[-_AFTER_ITSELF:])
        for user_agent, kind in zip(user_agents, kinds(user_agents), strict=True)
    ]


def kinds(user_agents: Sequence[str]) -> list[Kind]:
    """For each the same without the user agent itself: few differ in these."""
    return [_kind(found, device) for found, device in read_all(user_agents)]


@lru_cache(4_096)
def _kind(found: Classification, device: Device) -> Kind:
    return (
        found.traffic,
        found.agent,
        found.operator,
        found.purpose,
        found.rule,
        RULESET,
        device.browser,
        device.os,
        device.device,
    )
