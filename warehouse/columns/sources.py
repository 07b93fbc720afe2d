"""The set of sources that counted a page view, and source policies as masks of it.

A cell has a set of six bits: one for each source, and another one for each source of Markdown. A filter by source and a
policy are masks: a cell counts if its set meets the mask.
"""

from collections.abc import Mapping

from warehouse.control.policy import Policy

TRAFFIC = ("human", "ai", "bot")
"""Values of `hits.traffic`."""
SOURCES = ("beacon", "server", "log")
"""Values of `hits.source`, in the order of their bits."""
SEND_STATUS = SOURCES[1:]
"""Sources that see a response, with its status and format: a beacon is a script of the page."""
MARKDOWN = ("text/markdown", "markdown", "md")
"""Values of `hits.format` for Markdown, which browsers do not show: a page's beacon is never sent."""
EVERY = 0b111_111
BEACON, LOGS = 0b001_001, 0b110_110
"""Masks of beacons; of access logs and server posts, which policies call logs."""
_BEACON_MARKDOWN = 0b001_000
MASKS: Mapping[Policy, Mapping[str, int]] = {
    "all": dict.fromkeys(TRAFFIC, EVERY),
    "beacon_only": dict.fromkeys(TRAFFIC, BEACON),
    "log_only": dict.fromkeys(TRAFFIC, LOGS),
    "beacon_people_log_machines": {
        "human": (BEACON & ~_BEACON_MARKDOWN) | (LOGS & 0b111_000),
        **dict.fromkeys(("ai", "bot"), LOGS),
    },
}
"""Sources that a policy counts, by traffic."""
BITS = f"(1 << (enum_code(source::ENUM {SOURCES}) + 3 * coalesce(format IN {MARKDOWN}, false)::INTEGER))::UTINYINT"
"""SQL expression of the set of a row of `hits`. DuckDB raises an error for an unknown source."""
NAME = " ".join(
    ("CASE", *(f"WHEN sources & {0b001_001 << bit} <> 0 THEN '{name}'" for bit, name in enumerate(SOURCES)), "END")
)
"""SQL expression of the source of a cell of page views, whose set has one bit."""


def of_source(name: str) -> int:
    """Return the mask of a source."""
    return 0b001_001 << SOURCES.index(name)


def of_policy(policy: Policy) -> str:
    """Return the SQL expression of the mask of a policy."""
    human, machines = MASKS[policy]["human"], MASKS[policy]["ai"]
    return str(human) if human == machines else f"CASE WHEN traffic = 'human' THEN {human} ELSE {machines} END"


def counts(policy: Policy, source: str, traffic: str) -> bool:
    """Return whether a policy counts the page views of a source and a kind of traffic, without Markdown."""
    return bool(MASKS[policy][traffic] & (1 << SOURCES.index(source)))
