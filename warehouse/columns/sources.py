"""The set of readers and sources of a cell; filters by source and evidence, and source policies, as masks of it.

Each group of readers has six bits: one for each source, and another one for each source of Markdown. The groups are
people with each kind of evidence, from the lowest bits on, then AI and other bots. A page view has one bit, and a
visitor the bits of all views of a day. A cell counts if its set meets the mask.
"""

from collections.abc import Iterable
from functools import cache

from warehouse.columns import evidence
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
_EVIDENCE = evidence.VALUES
_GROUPS = {"human": range(len(_EVIDENCE)), "ai": [len(_EVIDENCE)], "bot": [len(_EVIDENCE) + 1]}
_ALL = range(len(_EVIDENCE) + 2)
_OF_PEOPLE = f"coalesce(enum_code(evidence::ENUM {_EVIDENCE})::INTEGER, {_EVIDENCE.index(evidence.NOT_MEASURED)})"
BITS = (
    f"(1::BIGINT << (enum_code(source::ENUM {SOURCES}) + 3 * coalesce(format IN {MARKDOWN}, false)::INTEGER"
    f" + 6 * CASE traffic WHEN 'human' THEN {_OF_PEOPLE} WHEN 'ai' THEN {_ALL[-2]} ELSE {_ALL[-1]} END))"
)
"""SQL expression of the set of a row of `hits` with the column `evidence`. An unknown source is an error."""


def _spread(six: int, groups: Iterable[int]) -> int:
    return sum(six << 6 * group for group in groups)


def of_source(name: str) -> int:
    return _spread(0b001_001 << SOURCES.index(name), _ALL)


def of_evidence(name: str) -> int:
    """Return the mask of people with a kind of evidence."""
    return _spread(0b111_111, [_EVIDENCE.index(name)])


def of_traffic(*kinds: str) -> int:
    return _spread(0b111_111, (group for kind in kinds for group in _GROUPS[kind]))


BY_SOURCE = tuple((name, of_source(name)) for name in SOURCES)
BY_EVIDENCE = (*((name, of_evidence(name)) for name in _EVIDENCE), (None, of_traffic("ai", "bot")))
"""Values of a cell's source and evidence, and their masks."""


def first_of(values: Iterable[tuple[str | None, int]]) -> str:
    """Return the SQL expression of the value of a cell of page views, whose set has one bit."""
    cases = (f"WHEN sources & {mask} <> 0 THEN '{name}'" for name, mask in values if name)
    return f"CASE {' '.join(cases)} END"


NAME, EVIDENCE = first_of(BY_SOURCE), first_of(BY_EVIDENCE)
"""SQL expressions of the source and of the evidence of a cell of page views."""


@cache
def of_policy(policy: Policy) -> int:
    """Return the mask of the readers and sources that a policy counts."""
    counted = COUNTED[policy]
    markdown = sum(8 << SOURCES.index(each) for each in counted.markdown)
    people, machines = (sum(1 << SOURCES.index(each) for each in of) for of in (counted.people, counted.machines))
    mask = _spread(people | markdown, _GROUPS["human"]) | _spread(machines | markdown, _ALL[-2:])
    return mask & ~of_evidence(evidence.NONE) if counted.only_confirmed else mask


@cache
def counts(policy: Policy, source: str, traffic: str) -> bool:
    """Return whether a policy counts the page views of a source and a kind of traffic, without Markdown."""
    return bool(of_policy(policy) & of_traffic(traffic) & _spread(1 << SOURCES.index(source), _ALL))
