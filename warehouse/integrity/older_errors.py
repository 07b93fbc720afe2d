"""Move of the table `daily_errors` of older releases into `requests`."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.columns.kinds import kind_of
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection
from warehouse.lake import delta_table, roots, staging
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.schema import REQUESTS
from warehouse.tables import DAILY_ERRORS_TABLE, REQUESTS_TABLE


def move(hot: HotConnection, root: Root, on_point: Callable[[str], None] = lambda point: None) -> None:
    """Add the rows of `daily_errors` to `requests`, those in waiting staged files included, and delete the table.

    The caller has the lake's lock. The commit that adds the rows records the move, so that an interrupted call can be
    repeated. `requests` takes the errors of later batches from the hot log.
    """
    folder, table = root / DAILY_ERRORS_TABLE.name, delta_table.open_table(root, REQUESTS_TABLE)
    if delta_table.is_table(folder) and not delta_table.offset(table, DAILY_ERRORS_TABLE.name):
        old, node = delta_table.open_table(root, DAILY_ERRORS_TABLE), batches.node_id(hot)
        while delta_table.offset(old, node) > delta_table.offset(table, node):  # the last load was killed
            old.load_as_version(old.version() - 1)
        waiting = batches.staged_above(hot, delta_table.offset(old, node))
        files = [file for _, staged in waiting for file in staged.files(DAILY_ERRORS_TABLE, folder)]
        rows = map(_requests, (*delta_table.list_files(old, DAILY_ERRORS_TABLE), *files))
        new = [file for each in rows for file in staging.write(root, REQUESTS_TABLE, each)]
        on_point("before commit")
        delta_table.add_files(table, REQUESTS_TABLE, new, DAILY_ERRORS_TABLE.name, 1)
    on_point("before removal")
    folder.remove_folder()
    root.sync()


def _requests(file: File) -> pa.Table:
    """Return the errors in a file of `daily_errors` as rows of `requests`, which count no request."""
    errors = pq.ParquetFile(roots.at(file.path).open_parquet()).read()
    columns = {name: errors[name] for name in errors.column_names}
    columns |= dict.fromkeys(("requests", "sized", "bytes"), pa.repeat(0, errors.num_rows))
    columns |= {
        "month": pa.repeat(file.partition, errors.num_rows),
        "kind": pa.array([kind_of(path or "/") for path in errors["path"].to_pylist()], pa.string()),
        "errors": errors["requests"],
    }
    nulls = {field.name: pa.nulls(errors.num_rows, field.type) for field in REQUESTS}
    return pa.table({name: (nulls | columns)[name] for name in REQUESTS.names}).cast(REQUESTS)
