"""Columns of stored hits under the current rules, without losing the verdict on their agent.

The address of a hit is not stored: its verdict cannot be computed again. The verdict is about the agent that the hit
claimed to be:

- If the rules still name this agent, the verdict stays. A spoofed hit stays a bot with the rule `bot:spoofed:NAME`.
- If the same rule has a new name for the agent, the verdict stays, too.
- If the rules name another agent or none, the verdict is dropped: the hit has the classification of the rules.

The headers of a hit are not stored either. A hit that was AI by its Accept header (`ai:accept-markdown`) or by its
signature (`ai:signed:NAME`) stays as it is, unless the rules name an agent or bot in its user agent.
"""

from warehouse.schema import CLASSIFICATION, HITS

_SAME_NAME = "stored.agent IS NOT DISTINCT FROM classified.agent"
_SAME_AGENT = f"({_SAME_NAME} OR (stored.rule = classified.rule AND classified.agent IS NOT NULL))"
_SPOOFED = f"(stored.verification IS NOT DISTINCT FROM 'spoofed' AND {_SAME_NAME} AND stored.agent IS NOT NULL)"
_UNCHECKED = "CASE WHEN classified.agent IS NOT NULL AND classified.traffic <> 'human' THEN 'not_checked' END"
_BY_HEADERS = """
(classified.agent IS NULL AND (stored.rule = 'ai:accept-markdown' OR starts_with(stored.rule, 'ai:signed:')))
"""
_OF_VERDICT = {
    "traffic": f"if({_SPOOFED}, 'bot', classified.traffic)",
    "agent": "classified.agent",
    "operator": f"if({_SPOOFED}, NULL, classified.operator)",
    "purpose": f"if({_SPOOFED}, NULL, classified.purpose)",
    "rule": f"if({_SPOOFED}, 'bot:spoofed:' || stored.agent, classified.rule)",
    "browser": "classified.browser",
    "verification": f"if(stored.verification IS NULL OR {_SAME_AGENT}, stored.verification, {_UNCHECKED})",
    "verified_by": f"if({_SAME_AGENT}, stored.verified_by, NULL)",
}
_CLASSIFIED = frozenset(CLASSIFICATION.names) - {"user_agent"}


def new_value(name: str) -> str:
    """Return the SQL expression of a column of `hits` under the current rules.

    The expression is over `stored`, the row, and `classified`, the classification of its user agent.
    """
    assert name in HITS.names, name
    if name in _OF_VERDICT:
        return f"if({_BY_HEADERS}, stored.{name}, {_OF_VERDICT[name]})"
    return f"classified.{name}" if name in _CLASSIFIED else f"stored.{name}"
