"""All requests of a log, as rows of `requests`."""

import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.imports.dictionary import compact
from warehouse.schema import CLASSIFICATION, REQUESTS, TIMESTAMP

_CLASS = {name: CLASSIFICATION.names.index(name) for name in ("traffic", "agent", "operator")}
_COUNTS = {
    "requests": ([], "count_all"),
    "sized": ("bytes", "count"),
    "bytes": ("bytes", "sum"),
    "first_seen": ("ts_us", "min"),
    "last_seen": ("ts_us", "max"),
}


def rows(project: str, asked: pa.Table, user_agents: UserAgentCache) -> pa.Table:
    """Return requests (ASKED), counted, as rows of `requests`. An agent is what the user agent claims to be."""
    user_agent = compact(asked["user_agent"])
    known = user_agents.columns_of_all(user_agent.dictionary.to_pylist())
    of_user_agents = [tuple(each[place] for place in _CLASS.values()) for each in known]
    classes = {each: number for number, each in enumerate(dict.fromkeys(of_user_agents))}
    key = {
        "class": pa.array(map(classes.get, of_user_agents), pa.int32()).take(user_agent.indices),
        "date": asked["ts_us"].cast(TIMESTAMP).cast(pa.date32()),
        **{name: asked[name] for name in ("kind", "status", "cache", "ms_below")},
    }
    table = pa.table({**key, "ts_us": asked["ts_us"], "bytes": asked["bytes"]}).unify_dictionaries()
    counted = table.group_by([*key], use_threads=False).aggregate([*_COUNTS.values()])
    counted = counted.rename_columns([*key, *_COUNTS])
    texts = zip(*classes, strict=True) if classes else ((),) * len(_CLASS)
    of_class = {name: pa.array(each, pa.string()) for name, each in zip(_CLASS, texts, strict=True)}
    columns = {
        **{name: counted[name] for name in counted.column_names},
        **{name: each.take(counted["class"]) for name, each in of_class.items()},
        "project_id": pa.repeat(project, len(counted)),
        "source": pa.repeat("log", len(counted)),
        "path": pa.nulls(len(counted), pa.string()),
        "errors": pa.repeat(0, len(counted)),
        "bytes": pc.fill_null(counted["bytes"], 0),
        "month": pc.strftime(counted["date"], format="%Y-%m"),
    }
    return pa.table([columns[field.name].cast(field.type) for field in REQUESTS], schema=REQUESTS)
