"""All that a user agent says of who reads: the one place that knows both of its parsers.

Without Arrow, so that a process which tells user agents apart and does nothing else loads it soon.
"""

from ingest.classify import RULESET, read
from ingest.processes import Kind

Reader = tuple[str | None, ...]
"""All that a user agent says, and itself."""
_AFTER_ITSELF = 3


def columns(user_agent: str) -> Reader:
    """The columns from `traffic` to `device`: those of `warehouse.schema.RULED`, in its order."""
    said = kind(user_agent)
    return (*said[:-_AFTER_ITSELF], user_agent, *said[-_AFTER_ITSELF:])


def kind(user_agent: str) -> Kind:
    """The same without the user agent itself: few differ in these."""
    found, device = read(user_agent)
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
