"""All requests of a log, as rows of `requests`."""

import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.user_agent_cache import UserAgentCache
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
    columns = {
        **{name: counted[name] for name in counted.column_names},
        **of_class,
        "project_id": pa.repeat(project, len(counted)),
        "source": pa.repeat("log", len(counted)),
        "path": pa.nulls(len(counted), pa.string()),
        "errors": pa.repeat(0, len(counted)),
        "month": pc.strftime(counted["date"], format="%Y-%m"),
        "first_seen": counted["first_us"].cast(TIMESTAMP),
        "last_seen": counted["last_us"].cast(TIMESTAMP),
    }
    return pa.table([columns[field.name].cast(field.type) for field in REQUESTS], schema=REQUESTS)
