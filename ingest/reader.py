"""All that a user agent says of who reads: the one place that knows both of its parsers.

Without Arrow, so that a process which tells user agents apart and does nothing else loads it soon.
"""

from ingest.classify import RULESET, classify
from ingest.device import describe
from ingest.second_core import Reader


def columns(user_agent: str) -> Reader:
    """The columns from `traffic` to `device`: those of `warehouse.schema.RULED`, in its order."""
    found = classify(user_agent)
    device = describe(user_agent)
    return (
        found.traffic,
        found.agent,
        found.operator,
        found.purpose,
        found.rule,
        RULESET,
        user_agent,
        device.browser,
        device.os,
        device.device,
    )
