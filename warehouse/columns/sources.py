"""The set of sources that counted a page view, and source policies as masks of it.

A cell has a set of six bits: one for each source, and another one for each source of Markdown. A filter by source and a
policy are masks: a cell counts if its set meets the mask.
"""

from functools import cache

from warehouse.control import policy
from warehouse.control.policy import COUNTED, Policy

TRAFFIC = ("human", "ai", "bot")
"""Values of `hits.traffic`."""
SOURCES = policy.SOURCES
"""Values of `hits.source`, in the order of their bits."""
SEND_STATUS = SOURCES[1:]
"""Sources that see a response, with its status and format: a beacon is a script of the page."""
MARKDOWN = ("text/markdown", "markdown", "md")
"""Values of `hits.format` for Markdown, which browsers do not show: a page's beacon is never sent."""
BITS = f"(1 << (enum_code(source::ENUM {SOURCES}) + 3 * coalesce(format IN {MARKDOWN}, false)::INTEGER))::UTINYINT"
"""SQL expression of the set of a row of `hits`. DuckDB raises an error for an unknown source."""
NAME = " ".join(
    ("CASE", *(f"WHEN sources & {0b001_001 << bit} <> 0 THEN '{name}'" for bit, name in enumerate(SOURCES)), "END")
)
"""SQL expression of the source of a cell of page views, whose set has one bit."""


def of_source(name: str) -> int:
    """Return the mask of a source."""
    return 0b001_001 << SOURCES.index(name)


@cache
def mask(policy: Policy, traffic: str) -> int:
    """Return the mask of the sources that a policy counts for a kind of traffic."""
    counted = COUNTED[policy]
    plain = counted.people if traffic == "human" else counted.machines
    return sum(1 << SOURCES.index(each) for each in plain) | sum(8 << SOURCES.index(each) for each in counted.markdown)


def of_policy(policy: Policy) -> str:
    """Return the SQL expression of the mask of a policy."""
    human, machines = mask(policy, "human"), mask(policy, "ai")
    return str(human) if human == machines else f"CASE WHEN traffic = 'human' THEN {human} ELSE {machines} END"


def counts(policy: Policy, source: str, traffic: str) -> bool:
    """Return whether a policy counts the page views of a source and a kind of traffic, without Markdown."""
    return bool(mask(policy, traffic) & (1 << SOURCES.index(source)))
