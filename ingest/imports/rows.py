"""Hits of a chunk as rows of the lake, with dictionary-encoded texts.

A hit is a page view, or a request for a page that was answered with an error. Errors are stored for AI agents and bots
(see `warehouse.requests`), and dropped for people.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.channels.channels import channel, of_referrer
from ingest.classification.user_agent_cache import Columns, UserAgentCache
from ingest.formats.page_filter import ERRORS
from ingest.hits.claims import check
from ingest.hits.classes import by_accept, rule_of_accept
from ingest.hits.hit import Hit
from ingest.hits.path_format import path_formats
from ingest.hits.row import NO_SITE, TAGS, Site
from ingest.hits.url import host
from ingest.imports.dictionary import TEXTS, compact, repeated, take
from ingest.places import database
from ingest.verification.verifier import Verifier
from warehouse.columns.hits import PARAMETERS
from warehouse.schema import CLASSIFICATION, HOT

_TRAFFIC, _AGENT = CLASSIFICATION.names.index("traffic"), CLASSIFICATION.names.index("agent")
ViewCounts = dict[tuple[str, str | None], int]
"""Number of page views by traffic and agent."""
PLACES = ("country", "language")
PARSED_HITS = pa.schema(
    {
        "path": TEXTS,
        "ts_us": pa.int64(),
        "user_agent": TEXTS,
        "referrer": TEXTS,
        **dict.fromkeys(PARAMETERS, TEXTS),
        "status": pa.int16(),
        "address": TEXTS,
        "accept": TEXTS,
        "country": TEXTS,
        "language": TEXTS,
    }
)
"""Schema of hits, with fields of `ingest.hits.hit.Hit` and of its evidence, which are null where they are not
logged; a dictionary may have texts that no row has. `address` and `accept` stay in memory."""


def hits_table(hits: list[Hit]) -> pa.Table:
    columns = {
        "path": [hit.path for hit in hits],
        "ts_us": [hit.ts_us for hit in hits],
        "user_agent": [hit.user_agent for hit in hits],
        "referrer": [hit.referrer for hit in hits],
        **{name: [hit.parameters.get(name) for hit in hits] for name in PARAMETERS},
        "status": [hit.status for hit in hits],
        **{name: [getattr(hit.evidence, name) for hit in hits] for name in ("address", "accept", *PLACES)},
    }
    return pa.table(
        [
            pa.array(columns[field.name], pa.string()).dictionary_encode()
            if field.type == TEXTS
            else pa.array(columns[field.name], field.type)
            for field in PARSED_HITS
        ],
        schema=PARSED_HITS,
    )


class Counts(NamedTuple):
    """Numbers of page views by traffic and agent, of stored errors, and of the skipped errors of people."""

    views: ViewCounts
    errors: int = 0
    skipped: int = 0


class LakeRows(NamedTuple):
    """Unsorted rows of `warehouse.schema.HOT`, page views and then errors, with the numbers of both.

    `skipped` is the number of people's requests that were answered with an error. They are not among the rows.
    """

    rows: pa.Table
    views: ViewCounts
    errors: int
    skipped: int


def lake_rows(
    project: str,
    views: pa.Table,
    received_us: int,
    user_agents: UserAgentCache,
    verifier: Verifier,
    site: Site = NO_SITE,
    visitor: pa.Array | None = None,
) -> LakeRows:
    """Return hits (PARSED_HITS) of a log as rows of the lake.

    The claims of agents are checked by the addresses of the hits. `ingest.hits.row.row` gives the same rows. `visitor`
    has the visitor of each hit; None if visitors are not counted.
    """
    hits = {name: compact(views[name]) for name in ("path", "user_agent", "referrer", *PARAMETERS)}
    hits |= {name: views[name].combine_chunks() for name in ("ts_us", "status")}
    hits["visitor"] = pa.nulls(len(views), pa.int64()) if visitor is None else visitor
    user_agent = hits["user_agent"]
    classified = user_agents.columns_of_all(user_agent.dictionary.to_pylist())
    address = compact(views["address"])
    checked = check(user_agent, classified, address, hits["ts_us"], verifier)
    classes, hits["class"] = _by_accept(checked.classes, checked.indices, views["accept"])
    hits["verdict"] = checked.verdict
    hits |= _places(views, address, _is_person(hits["class"], classes), site.country_database)
    stored, counts = _without_people(hits["status"], hits["class"], classes)
    if stored is not None:  # before `_rows`, because the lake has three times as many columns
        hits = {name: column.take(stored) for name, column in hits.items()}
    return LakeRows(_rows(project, hits, classes, checked.verdicts, received_us, site.own_hosts), *counts)


def _rows(
    project: str,
    hits: Mapping[str, pa.Array],
    classes: Sequence[Columns],
    verdicts: Sequence[tuple[str | None, str | None]],
    received_us: int,
    own: frozenset[str],
) -> pa.Table:
    """Return rows of the lake. `hits` has columns of PARSED_HITS, `visitor`, and indices: `class` and `verdict`."""
    path, user_agent, referrer, count = hits["path"], hits["user_agent"], hits["referrer"], len(hits["class"])
    hosts = [host(text) for text in referrer.dictionary.to_pylist()]
    is_person = _is_person(hits["class"], classes)
    columns = {
        "project_id": repeated(project, count),
        "ts": hits["ts_us"].cast(HOT.field("ts").type),
        "path": path,
        **{
            name: take([each[place] for each in classes], hits["class"])
            for place, name in enumerate(CLASSIFICATION.names)
            if name != "user_agent"
        },
        "user_agent": user_agent,
        "referrer": referrer,
        "referrer_host": take(hosts, referrer.indices),
        **{name: hits[name] for name in PARAMETERS},
        "format": path_formats(path),
        "status": hits["status"],
        "source": repeated("log", count),
        "received_at": pa.repeat(pa.scalar(received_us, HOT.field("received_at").type), count),
        "verification": take([state for state, _ in verdicts], hits["verdict"]),
        "verified_by": take([verified_by for _, verified_by in verdicts], hits["verdict"]),
        "visitor": hits["visitor"],
        "channel": _channels(hits, hosts, is_person, own),
        **{name: hits[name] for name in PLACES if name in hits},
    }
    nulls = {name: pa.nulls(count, HOT.field(name).type) for name in HOT.names if name not in columns}
    return pa.table({name: {**columns, **nulls}[name] for name in HOT.names})


def _is_person(indices: pa.Array, classes: Sequence[Columns]) -> pa.Array:
    return pa.array([each[_TRAFFIC] == "human" for each in classes], pa.bool_()).take(indices)


def _places(
    views: pa.Table, address: pa.DictionaryArray, is_person: pa.Array, country_database: str
) -> dict[str, pa.DictionaryArray]:
    """Return the logged country and language of each view by a person. If no country is logged, look up the address."""
    logged = {name: compact(views[name]) for name in PLACES if views[name].null_count < len(views)}
    places = {name: _where(is_person, column) for name, column in logged.items()}
    if country_database:
        found = [places["country"]] if "country" in places else []
        found.append(_countries(address, is_person, country_database))
        places["country"] = pc.coalesce(*(each.cast(pa.string()) for each in found)).dictionary_encode()
    return places


def _where(is_person: pa.Array, column: pa.DictionaryArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pc.if_else(is_person, column.indices, None), column.dictionary)


def _countries(address: pa.DictionaryArray, is_person: pa.Array, country_database: str) -> pa.DictionaryArray:
    """Return the country of the address of each view by a person. Each address is looked up once."""
    of_people = compact(pa.chunked_array([_where(is_person, address)]))
    codes = [database.of_address(country_database, text) for text in of_people.dictionary.to_pylist()]
    return take(codes, of_people.indices)


def _channels(
    hits: Mapping[str, pa.Array], hosts: Sequence[str | None], is_person: pa.Array, own: frozenset[str]
) -> pa.DictionaryArray:
    """Return the channel of each view by a person, from the referrer's host or parameters, which few views have."""
    referrers = pc.fill_null(hits["referrer"].indices.cast(pa.int32()), len(hosts))
    by_referrer = pa.array([of_referrer(host, own) for host in (*hosts, None)], pa.string()).dictionary_encode()
    names = [*by_referrer.dictionary.to_pylist()]
    indices = by_referrer.indices.take(referrers)
    is_tagged = pc.and_(is_person, reduce(pc.or_, (hits[name].is_valid() for name in TAGS)))
    if pc.any(is_tagged).as_py():
        tagged = {name: hits[name].filter(is_tagged).to_pylist() for name in TAGS}
        places = [hosts[place] if place < len(hosts) else None for place in referrers.filter(is_tagged).to_pylist()]
        found = [channel(*each) for each in zip(places, *tagged.values(), strict=True)]
        names += [name for name in dict.fromkeys(found) if name not in names]
        indices = pc.replace_with_mask(indices, is_tagged, pa.array([names.index(name) for name in found], pa.int32()))
    return pa.DictionaryArray.from_arrays(pc.if_else(is_person, indices, None), pa.array(names, pa.string()))


def _by_accept(classes: list[Columns], indices: pa.Array, accept: pa.ChunkedArray) -> tuple[list[Columns], pa.Array]:
    """Return the classes, and the index of each page view's class, with the Accept header taken into account."""
    if accept.null_count == len(accept):
        return classes, indices
    headers = compact(accept)
    rules = pa.array(map(rule_of_accept, headers.dictionary.to_pylist()), pa.string()).take(headers.indices)
    classes, old = [*classes], indices.to_numpy()
    new = old.copy()
    for rule in pc.unique(rules.drop_null()).to_pylist():
        views = pc.indices_nonzero(pc.equal(rules, rule)).to_numpy()
        known, places = np.unique(old[views], return_inverse=True)
        new[views] = len(classes) + places
        classes += [by_accept(classes[number], rule) for number in known]
    return classes, pa.array(new)


def _without_people(status: pa.Array, indices: pa.Array, classes: Sequence[Columns]) -> tuple[pa.Array | None, Counts]:
    """Return the places of page views and then of errors that are not of people; None if all hits are page views.

    `indices` are the indices of the hits' classes in `classes`.
    """
    is_failed = pc.fill_null(pc.greater_equal(status, ERRORS.start), fill_value=False)
    if not pc.any(is_failed).as_py():
        return None, Counts(_count(indices, classes))
    places, failed = pc.indices_nonzero(pc.invert(is_failed)), pc.indices_nonzero(is_failed)
    people = [place for place, columns in enumerate(classes) if columns[_TRAFFIC] == "human"]
    errors = failed.filter(pc.invert(pc.is_in(indices.take(failed), value_set=pa.array(people, indices.type))))
    counts = Counts(_count(indices.take(places), classes), len(errors), len(failed) - len(errors))
    return pa.concat_arrays([places, errors]), counts


def _count(indices: pa.Array, classes: Sequence[Columns]) -> ViewCounts:
    counts: ViewCounts = {}
    for group in indices.value_counts().to_pylist():
        columns = classes[group["values"]]
        key = (str(columns[_TRAFFIC]), columns[_AGENT])
        counts[key] = counts.get(key, 0) + group["counts"]
    return counts
