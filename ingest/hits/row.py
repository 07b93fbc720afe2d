"""Rows of the lake (`warehouse.schema.HOT`): a hit, with the columns derived from its user agent and referrer."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa

from ingest.channels.channels import channel, of_referrer
from ingest.classification.user_agent_cache import Columns, UserAgentCache
from ingest.hits.classes import agent_of, as_signed, as_spoofed, by_accept, rule_of_accept
from ingest.hits.evidence import Evidence, hints
from ingest.hits.hit import Hit
from ingest.hits.parameters import Parameters
from ingest.hits.path_format import path_format
from ingest.hits.url import host
from ingest.places import country, database
from ingest.verification.signature_agents import signed_agent
from ingest.verification.verdict import Verdict
from ingest.verification.verifier import Verifier
from ingest.visitors.visitor import Salt, SaltsOf, of_views
from warehouse.columns.hits import PARAMETERS
from warehouse.schema import CLASSIFICATION, EVENTS, HOT, Row

TRAFFIC, AGENT = (HOT.names.index(name) for name in ("traffic", "agent"))
"""Indexes of the columns `traffic` and `agent` in a row."""
USER_AGENTS = UserAgentCache()
"""Cache of the user agents of posted hits."""
_SHIPPED_LISTS = Verifier()
_NAMES = [name for name in HOT.names if name not in PARAMETERS]
_in_order = itemgetter(*map([*_NAMES, *PARAMETERS].index, HOT.names))
"""Function that puts the parameters of a row, which are the last ones, in their places."""
_WITH_EVENT = [*HOT.names, "name", "interactive", "props"]
_of_event = itemgetter(*(_WITH_EVENT.index(name) for name in EVENTS.names if name != "date"))
"""Function that returns the row of an event from the row of a hit, with the fields of `Event` at its end."""
TAGS = ("utm_source", "utm_medium", "click")
"""Parameters that decide the channel."""


class Site(NamedTuple):
    """What decides the channels and countries of a project: the hosts of its site, and a MaxMind DB file or nothing."""

    own_hosts: frozenset[str] = frozenset()
    country_database: str = ""


NO_SITE = Site()


def no_salts(project: str, days: Iterable[int]) -> Mapping[int, Salt]:
    """Return no salt: the visitors of the project are not counted."""
    return {}


def row(
    project: str,
    hit: Hit,
    source: str,
    received_us: int,
    verifier: Verifier = _SHIPPED_LISTS,
    salts_of: SaltsOf = no_salts,
    site: Site = NO_SITE,
) -> Row:
    """Return the row of one hit or event. It is the same under one ruleset, one salt and the same address lists.

    A beacon has neither an Accept header nor a format of its page: it is a request of a script on an HTML page.
    """
    [visitor] = _visitors(project, [hit], source, salts_of)
    post = _Post(project, source, received_us, verifier, site)
    return _row(post, hit, USER_AGENTS.columns(hit.user_agent), visitor)


def rows(
    project: str,
    hits: Sequence[Hit],
    received_us: int,
    verifier: Verifier,
    salts_of: SaltsOf = no_salts,
    site: Site = NO_SITE,
) -> list[Row]:
    """Return the rows of the hits of a server's post, each as `row` does. Each user agent is looked up once."""
    post = _Post(project, "server", received_us, verifier, site)
    columns: dict[str, Columns] = {}
    stored = []
    for hit, visitor in zip(hits, _visitors(project, hits, "server", salts_of), strict=True):
        if (known := columns.get(hit.user_agent)) is None:
            known = columns[hit.user_agent] = USER_AGENTS.columns(hit.user_agent)
        stored.append(_row(post, hit, known, visitor))
    return stored


def _visitors(project: str, hits: Sequence[Hit], source: str, salts_of: SaltsOf) -> list[int | None]:
    return of_views(project, ((hit.evidence.address, hit.user_agent, hit.ts_us) for hit in hits), source, salts_of)


class _Post(NamedTuple):
    """What the rows of a post have in common."""

    project: str
    source: str
    received_us: int
    verifier: Verifier
    site: Site


def _row(post: _Post, hit: Hit, columns: Columns, visitor: int | None) -> Row:
    source, verifier = post.source, post.verifier
    if hit.evidence.accept is not None and source != "beacon" and (rule := rule_of_accept(hit.evidence.accept)):
        columns = by_accept(columns, rule)
    verdict = _verdict(agent_of(columns), hit, verifier)
    if verdict is not None:
        columns = _by_verdict(columns, verdict)
    referrer_host = host(hit.referrer) if hit.referrer else None
    is_person = columns[0] == "human"
    fields: Row = (
        post.project,
        hit.ts_us,
        hit.path,
        *columns,
        hit.referrer,
        referrer_host,
        hit.format if source == "beacon" else hit.format or path_format(hit.path),
        hit.status,
        source,
        hit.event_id,
        post.received_us,
        *(verdict or (None, None)),
        hints(hit.evidence) if source == "server" else None,
        visitor,
        _country(hit.evidence, post.site.country_database) if is_person else None,
        hit.evidence.language if is_person else None,
        None,  # engaged_ms
        _channel(referrer_host, hit.parameters, post.site.own_hosts) if is_person else None,
        hit.bytes,
        hit.duration_ms,
        hit.cache,
        *map(hit.parameters.get, PARAMETERS),
    )
    stored: Row = _in_order(fields)
    if hit.event is not None:
        stored = _of_event((*stored, *hit.event))
    return stored


def _country(evidence: Evidence, country_database: str) -> str | None:
    """Return the country that an edge network names; without one, the country of the address or of the time zone."""
    of_address = database.of_address(country_database, evidence.address) if country_database else None
    return evidence.country or of_address or country.of_time_zone(evidence.time_zone)


def _channel(referrer_host: str | None, parameters: Parameters, own: frozenset[str]) -> str | None:
    if any(map(parameters.get, TAGS)):
        return channel(referrer_host, *map(parameters.get, TAGS))
    return of_referrer(referrer_host, own)


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
