"""Loads of assets in a log, as rows of `asset_loads`: evidence that people were there."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.formats.page_filter import ASSET, ASSET_STATUSES
from ingest.imports.dictionary import compact, map_values
from warehouse.schema import ASSET_LOADS, CLASSIFICATION, TIMESTAMP

_TRAFFIC = CLASSIFICATION.names.index("traffic")


def split(hits: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the hits of pages, and those that are loads of assets."""
    path = compact(hits["path"])
    is_asset = map_values(path, lambda text: text == ASSET, pa.bool_())
    if not pc.any(is_asset).as_py():
        return hits, hits.slice(0, 0)
    return hits.filter(pc.invert(is_asset)), hits.filter(is_asset)


def asset_loads(project: str, assets: pa.Table, visitor: pa.Array, user_agents: UserAgentCache) -> pa.Table:
    """Return the numbers of loads by day and visitor. AI, bots and unknown addresses have no visitor.

    If visitors are not counted, no load is.
    """
    assets = assets.append_column("visitor", visitor)
    assets = assets.filter(pc.is_in(assets["status"], pa.array(ASSET_STATUSES, pa.int16())))
    if assets["visitor"].null_count == assets.num_rows:
        return ASSET_LOADS.empty_table()
    user_agent = compact(assets["user_agent"])
    classes = user_agents.columns_of_all(user_agent.dictionary.to_pylist())
    is_human = pa.array([each[_TRAFFIC] == "human" for each in classes], pa.bool_()).take(user_agent.indices)
    days = assets["ts_us"].cast(TIMESTAMP).cast(pa.date32())
    keys = pa.table({"date": days, "visitor": pc.if_else(is_human, assets["visitor"], pa.scalar(None, pa.int64()))})
    loads = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    projects = pa.array(np.full(loads.num_rows, project), pa.string())
    columns = [projects, loads["date"], loads["visitor"], loads["count_all"]]
    return pa.Table.from_arrays(columns, schema=ASSET_LOADS)
