"""All requests of a log, as rows of `requests`."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.imports.columns.request_counts import COUNTED, KEY, SUMS, grouped
from ingest.imports.dictionary import compact
from warehouse.schema import CLASSIFICATION, REQUESTS, TIMESTAMP

_CLASS = ("traffic", "agent", "operator")


def accepted(counted: pa.Table, times: range) -> pa.Table:
    """Return the counts (COUNTED) with a time in a range, in microseconds since 1970."""
    return counted.filter((pc.field("first_us") < times.stop) & (pc.field("last_us") >= times.start))


def rows(project: str, counted: pa.Table, user_agents: UserAgentCache) -> pa.Table:
    """Return counts (COUNTED) as rows of `requests`. An agent is what the user agent claims to be."""
    user_agent = compact(counted["user_agent"])
    classes = user_agents.columns_of_all(user_agent.dictionary.to_pylist())
    texts = {name: [each[CLASSIFICATION.names.index(name)] for each in classes] for name in _CLASS}
    of_class = {name: pa.array(texts[name], pa.string()).take(user_agent.indices) for name in _CLASS}
    key = [*_CLASS, *(name for name in KEY if name != "user_agent")]
    sums = grouped(pa.table({**{name: counted[name] for name in COUNTED.names}, **of_class}), key, SUMS)
    columns = {
        **{name: sums[name] for name in sums.column_names},
        "project_id": pa.array(np.full(sums.num_rows, project), pa.string()),
        "month": pc.strftime(sums["date"], format="%Y-%m"),
        "first_seen": sums["first_us"].cast(TIMESTAMP),
        "last_seen": sums["last_us"].cast(TIMESTAMP),
    }
    return pa.table([columns[field.name].cast(field.type) for field in REQUESTS], schema=REQUESTS)
