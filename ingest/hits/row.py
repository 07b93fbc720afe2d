"""Rows of the lake (`warehouse.schema.HOT`): a hit, with the columns derived from its user agent and referrer."""

from collections.abc import Sequence
from operator import itemgetter

import pyarrow as pa

from ingest.classification.user_agent_cache import Columns, UserAgentCache
from ingest.hits.classes import agent_of, as_signed, as_spoofed, by_accept, rule_of_accept
from ingest.hits.evidence import hints
from ingest.hits.hit import Hit
from ingest.hits.path_format import path_format
from ingest.hits.url import host
from ingest.verification.signature_agents import signed_agent
from ingest.verification.verdict import Verdict
from ingest.verification.verifier import Verifier
from ingest.visitors.visitor import SaltOf, of_views
from warehouse.columns.hits import PARAMETERS
from warehouse.schema import CLASSIFICATION, HOT, Row

TRAFFIC, AGENT = (HOT.names.index(name) for name in ("traffic", "agent"))
"""Indexes of the columns `traffic` and `agent` in a row."""
USER_AGENTS = UserAgentCache()
"""Cache of the user agents of posted hits."""
_SHIPPED_LISTS = Verifier()
_NAMES = [name for name in HOT.names if name not in PARAMETERS]
_in_order = itemgetter(*map([*_NAMES, *PARAMETERS].index, HOT.names))
"""Function that puts the parameters of a row, which are the last ones, in their places."""
_LATER = (None,) * len(_NAMES[_NAMES.index("visitor") + 1 :])
"""Columns after `visitor` that no source fills yet."""


def no_salt(project: str, day: int) -> None:
    """Return None: the visitors of the project are not counted."""


def row(
    project: str,
    hit: Hit,
    source: str,
    received_us: int,
    verifier: Verifier = _SHIPPED_LISTS,
    salt_of: SaltOf = no_salt,
) -> Row:
    """Return the row of one hit. The same hit gives the same row under one ruleset, salt and the same address lists.

    A beacon has neither an Accept header nor a format of its page: it is a request of a script on an HTML page.
    """
    [visitor] = _visitors(project, [hit], source, salt_of)
    return _row(project, hit, USER_AGENTS.columns(hit.user_agent), source, received_us, verifier, visitor)


def rows(
    project: str, hits: Sequence[Hit], received_us: int, verifier: Verifier, salt_of: SaltOf = no_salt
) -> list[Row]:
    """Return the rows of the hits of a server's post, each as `row` does. Each user agent is looked up once."""
    columns: dict[str, Columns] = {}
    stored = []
    for hit, visitor in zip(hits, _visitors(project, hits, "server", salt_of), strict=True):
        if (known := columns.get(hit.user_agent)) is None:
            known = columns[hit.user_agent] = USER_AGENTS.columns(hit.user_agent)
        stored.append(_row(project, hit, known, "server", received_us, verifier, visitor))
    return stored


def _visitors(project: str, hits: Sequence[Hit], source: str, salt_of: SaltOf) -> list[int | None]:
    return of_views(project, ((hit.evidence.address, hit.user_agent, hit.ts_us) for hit in hits), source, salt_of)


def _row(
    project: str,
    hit: Hit,
    columns: Columns,
    source: str,
    received_us: int,
    verifier: Verifier,
    visitor: int | None,
) -> Row:
    if hit.evidence.accept is not None and source != "beacon" and (rule := rule_of_accept(hit.evidence.accept)):
        columns = by_accept(columns, rule)
    verdict = _verdict(agent_of(columns), hit, verifier)
    if verdict is not None:
        columns = _by_verdict(columns, verdict)
    fields: Row = (
        project,
        hit.ts_us,
        hit.path,
        *columns,
        hit.referrer,
        host(hit.referrer) if hit.referrer else None,
        hit.format if source == "beacon" else hit.format or path_format(hit.path),
        hit.status,
        source,
        hit.event_id,
        received_us,
        *(verdict or (None, None)),
        hints(hit.evidence) if source == "server" else None,
        visitor,
        *_LATER,
        *map(hit.parameters.get, PARAMETERS),
    )
    stored: Row = _in_order(fields)
    return stored


def _verdict(agent: str | None, hit: Hit, verifier: Verifier) -> Verdict | None:
    """Return the verdict on a hit; None for a hit that claims to be no agent, unless its signature decides."""
    if agent is not None:
        return verifier.verify(agent, hit.user_agent, hit.evidence, hit.ts_us)
    if hit.evidence.headers is None or "signature-input" not in hit.evidence.headers:
        return None
    verdict = verifier.verify(None, hit.user_agent, hit.evidence, hit.ts_us)
    return None if verdict.verified_by is None else verdict


def _by_verdict(columns: Columns, verdict: Verdict) -> Columns:
    if verdict.state == "spoofed":
        return as_spoofed(columns)
    agent = signed_agent(verdict) if agent_of(columns) is None else None
    return columns if agent is None else as_signed(columns, agent)


def classify_user_agents(user_agents: list[str]) -> pa.Table:
    """Return the classification of each user agent by the current rules, as a table of schema `CLASSIFICATION`."""
    rows = [dict(zip(CLASSIFICATION.names, each, strict=True)) for each in USER_AGENTS.columns_of_all(user_agents)]
    return pa.Table.from_pylist(rows, CLASSIFICATION)
