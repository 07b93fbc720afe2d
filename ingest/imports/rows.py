"""Hits of a chunk as rows of the lake, with dictionary-encoded texts.

A hit is a page view, or a request for a page that was answered with an error. The errors of AI agents and bots are
stored (see `warehouse.daily_count`), those of people are not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.user_agent_cache import Columns, UserAgentCache
from ingest.formats.page_filter import ERRORS
from ingest.hits.claims import check
from ingest.hits.classes import by_accept, rule_of_accept
from ingest.hits.hit import Hit
from ingest.hits.path_format import path_formats
from ingest.hits.url import host
from ingest.imports.dictionary import TEXTS, compact
from ingest.verification.verifier import Verifier
from warehouse.schema import CLASSIFICATION, HOT

_TRAFFIC, _AGENT = CLASSIFICATION.names.index("traffic"), CLASSIFICATION.names.index("agent")
ViewCounts = dict[tuple[str, str | None], int]
"""Number of page views by traffic and agent."""
VIEWS = pa.schema(
    {
        "path": TEXTS,
        "ts_us": pa.int64(),
        "user_agent": TEXTS,
        "referrer": TEXTS,
        "utm_source": TEXTS,
        "status": pa.int16(),
        "address": TEXTS,
        "accept": TEXTS,
    }
)
"""Schema of hits, with fields of `ingest.hits.hit.Hit` and of its evidence, which are null where they are not
logged; a dictionary may have texts that no row has. `address` and `accept` stay in memory."""


def views_table(hits: list[Hit]) -> pa.Table:
    """Return hits as a table of VIEWS."""
    columns = {
        "path": [hit.path for hit in hits],
        "ts_us": [hit.ts_us for hit in hits],
        "user_agent": [hit.user_agent for hit in hits],
        "referrer": [hit.referrer for hit in hits],
        "utm_source": [hit.utm_source for hit in hits],
        "status": [hit.status for hit in hits],
        "address": [hit.evidence.address for hit in hits],
        "accept": [hit.evidence.accept for hit in hits],
    }
    return pa.table(
        [
            pa.array(columns[field.name], pa.string()).dictionary_encode()
            if field.type == TEXTS
            else pa.array(columns[field.name], field.type)
            for field in VIEWS
        ],
        schema=VIEWS,
    )


class LakeRows(NamedTuple):
    """Unsorted rows of `warehouse.schema.HOT`, page views and errors, with the numbers of both.

    `skipped` is the number of people's requests that were answered with an error. They are not among the rows.
    """

    rows: pa.Table
    views: ViewCounts
    errors: int
    skipped: int


def lake_rows(
    project: str, views: pa.Table, received_us: int, user_agents: UserAgentCache, verifier: Verifier
) -> LakeRows:
    """Return hits (VIEWS) of a log as rows of the lake.

    The claims of agents are checked by the addresses of the hits. `ingest.hits.row.row` gives the same rows.
    """
    path, user_agent, referrer, utm_source = (
        compact(views[name]) for name in ("path", "user_agent", "referrer", "utm_source")
    )
    classified = user_agents.columns_of_all(user_agent.dictionary.to_pylist())
    checked = check(user_agent, classified, compact(views["address"]), views["ts_us"].combine_chunks(), verifier)
    classes, indices = _by_accept(checked.classes, checked.indices, views["accept"])
    hosts = [host(text) for text in referrer.dictionary.to_pylist()]
    columns = {
        "project_id": _constant(project, views.num_rows),
        "ts": views["ts_us"].combine_chunks().cast(HOT.field("ts").type),
        "path": path,
        **{
            name: _take([each[place] for each in classes], indices)
            for place, name in enumerate(CLASSIFICATION.names)
            if name != "user_agent"
        },
        "user_agent": user_agent,
        "referrer": referrer,
        "referrer_host": _take(hosts, referrer.indices),
        "utm_source": utm_source,
        "format": path_formats(path),
        "status": views["status"].combine_chunks(),
        "source": _constant("log", views.num_rows),
        "received_at": pa.repeat(pa.scalar(received_us, HOT.field("received_at").type), views.num_rows),
        "verification": _take([state for state, _ in checked.verdicts], checked.verdict),
        "verified_by": _take([verified_by for _, verified_by in checked.verdicts], checked.verdict),
    }
    nulls = {name: pa.nulls(views.num_rows, HOT.field(name).type) for name in HOT.names if name not in columns}
    rows = pa.table({name: {**columns, **nulls}[name] for name in HOT.names})
    return _without_people(rows, indices, classes)


def _by_accept(
    classes: Sequence[Columns], indices: pa.Array, accept: pa.ChunkedArray
) -> tuple[Sequence[Columns], pa.Array]:
    """Return the classes and the class of each page view by its Accept header, too."""
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


def _without_people(rows: pa.Table, classes: pa.Array, classified: Sequence[Columns]) -> LakeRows:
    """Return the rows without the errors of people. `classes` are the indices of the rows' classes in `classified`."""
    is_failed = pc.fill_null(pc.greater_equal(rows["status"].combine_chunks(), ERRORS.start), fill_value=False)
    if not pc.any(is_failed).as_py():
        return LakeRows(rows, _count(classes, classified), 0, 0)
    is_view, failed = pc.invert(is_failed), pc.value_counts(classes.filter(is_failed)).to_pylist()
    people = [place for place, columns in enumerate(classified) if columns[_TRAFFIC] == "human"]
    skipped = sum(group["counts"] for group in failed if group["values"] in people)
    is_person = pc.is_in(classes, value_set=pa.array(people, classes.type))
    stored = rows.filter(pc.or_(is_view, pc.invert(is_person))) if skipped else rows
    errors = sum(group["counts"] for group in failed) - skipped
    return LakeRows(stored, _count(classes.filter(is_view), classified), errors, skipped)


def _count(user_agents: pa.Array, classified: Sequence[Columns]) -> ViewCounts:
    counts: ViewCounts = {}
    for group in user_agents.value_counts().to_pylist():
        columns = classified[group["values"]]
        key = (str(columns[_TRAFFIC]), columns[_AGENT])
        counts[key] = counts.get(key, 0) + group["counts"]
    return counts


def _take(values: Sequence[str | None], indices: pa.Array) -> pa.DictionaryArray:
    """Return `values[index]` for each index, with the distinct values as the dictionary."""
    distinct = pa.array(values, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(distinct.indices.take(indices), distinct.dictionary)


def _constant(value: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value], pa.string()))
