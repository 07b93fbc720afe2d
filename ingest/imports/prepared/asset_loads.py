"""Loads of assets in a log, as rows of `asset_loads`: evidence that people were there."""

import pyarrow as pa
import pyarrow.compute as pc

from ingest.formats.page_filter import ASSET, ASSET_STATUSES
from ingest.imports.dictionary import TEXTS, compact, map_values
from warehouse.schema import ASSET_LOADS, TIMESTAMP


def split(hits: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return the hits of pages, the loads of assets without their texts, and the downloads of other files."""
    path, loads = compact(hits["path"]), hits.select([each.name for each in hits.schema if each.type != TEXTS])
    is_page = map_values(path, lambda text: text.startswith("/"), pa.bool_())
    is_asset = map_values(path, ASSET.__eq__, pa.bool_())
    is_file = pc.invert(pc.or_(is_page, is_asset))
    return hits.filter(is_page), loads.filter(is_asset), hits.filter(is_file)


def asset_loads(project: str, assets: pa.Table) -> pa.Table:
    """Return the numbers of loads by day and visitor. AI and bots have one, too: `reclassify` can make them people.

    Unknown addresses have no visitor. If visitors are not counted, no load is.
    """
    assets = assets.filter(pc.is_in(assets["status"], pa.array(ASSET_STATUSES, pa.int16())))
    if assets["visitor"].null_count == assets.num_rows:
        return ASSET_LOADS.empty_table()
    keys = pa.table({"date": assets["ts_us"].cast(TIMESTAMP).cast(pa.date32()), "visitor": assets["visitor"]})
    loads = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    columns = [pa.repeat(project, loads.num_rows), loads["date"], loads["visitor"], loads["count_all"]]
    return pa.Table.from_arrays(columns, schema=ASSET_LOADS)
