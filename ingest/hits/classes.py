"""Classes of hits that the user agent does not decide alone: requests for Markdown, signed and spoofed agents.

A class is the columns of `warehouse.schema.CLASSIFICATION`. The cached class of a user agent is never changed.
"""

from ingest.classification.user_agent_cache import Columns
from warehouse.schema import CLASSIFICATION

_TRAFFIC, _AGENT = (CLASSIFICATION.names.index(name) for name in ("traffic", "agent"))


def agent_of(columns: Columns) -> str | None:
    """Return the AI agent or bot that a user agent claims to be; None for people and unnamed bots."""
    return None if columns[_TRAFFIC] == "human" else columns[_AGENT]


def rule_of_accept(accept: str) -> str | None:
    """Return the rule that an Accept header matches, such as `ai:accept-markdown`, or None."""
    from ingest.classification.accept import find  # noqa: PLC0415  # loads the tables of rules; most logs lack Accept

    match = find(accept)
    return None if match is None else f"ai:{match[1].kind}"


def by_accept(columns: Columns, rule: str) -> Columns:
    """Return the class of a hit whose Accept header matches a rule: AI, unless the user agent has a name."""
    if columns[_AGENT] is not None:
        return columns
    return _changed(columns, traffic="ai", rule=rule, browser=None)


def as_spoofed(columns: Columns) -> Columns:
    """Return the class of a hit whose address is not one of the agent that its user agent names.

    The hit is a bot with the name of the agent, and without operator and purpose.
    """
    return _changed(columns, traffic="bot", operator=None, purpose=None, rule=f"bot:spoofed:{columns[_AGENT]}")


def as_signed(columns: Columns, agent: str) -> Columns:
    """Return the class of a hit that the owner of an AI agent has signed, and whose user agent names no agent or bot.

    Only the signature names the agent: that of ChatGPT's agent comes with the user agent of Chrome.
    """
    from ingest.classification.agents import BY_NAME  # noqa: PLC0415  # loads the table; few hits are signed

    row = BY_NAME[agent]
    rule = f"ai:signed:{agent}"
    return _changed(
        columns, traffic="ai", agent=agent, operator=row.operator, purpose=row.purpose, rule=rule, browser=None
    )


def _changed(columns: Columns, **changed: str | None) -> Columns:
    return tuple(changed.get(name, value) for name, value in zip(CLASSIFICATION.names, columns, strict=True))
