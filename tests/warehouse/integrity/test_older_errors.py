"""The errors of an older release move into `requests`, each once."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.warehouse.site import DAY, NOON, Row, Site, view
from warehouse.database.transaction import transaction
from warehouse.hotlog import batches
from warehouse.integrity import durability, older_errors
from warehouse.lake import agents_file, delta_table, roots
from warehouse.lake.staging import Staged, StagedFile
from warehouse.query import sql_views
from warehouse.query.snapshot import SnapshotReader
from warehouse.schema import DAILY_ERRORS, HOT
from warehouse.tables import DAILY_ERRORS_TABLE, HITS_TABLE, REQUESTS_TABLE


class Killed(Exception):  # no error
    """End of a process."""


@pytest.fixture(params=["local"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    root = None
    if request.param == "object store":
        root = roots.open_remote(f"{request.getfixturevalue('bucket')}/lake", tmp_path / "lake")
    with closing(Site(tmp_path, root=root)) as opened:
        agents_file.write_agents(opened.root, [])
        yield opened


def error(number: int) -> Row:
    row = {"traffic": "ai", "agent": "GPTBot", "rule": "ai:GPTBot", "status": 404, "event_id": f"{number}"}
    return view(path=f"/gone/{number}", ts=NOON - 20 * number * DAY, **row)


def as_older(site: Site, errors: Sequence[Row], loaded: Sequence[Row] = ()) -> None:
    """Store errors in the table `daily_errors`, which has the batches of `hits`, and delete `requests`.

    With `loaded`, the next batch, a load was killed before its commit to `requests`, which is not deleted.
    """
    options = {"partition_by": ["month"], "storage_options": site.root.delta_options}
    table = DeltaTable.create(str(site.root / DAILY_ERRORS_TABLE.name), DAILY_ERRORS, **options)
    counts = [{**row, "month": f"{row['ts']:%Y-%m}", "date": row["ts"].date(), "requests": 3} for row in errors]
    rows = [{**row, "first_seen": row["ts"], "last_seen": row["ts"]} for row in counts]
    node, offset = batches.node_id(site.hot), site.state(HITS_TABLE).offset
    delta_table.append(table, pa.Table.from_pylist(rows, DAILY_ERRORS), node, offset)
    if loaded:
        site.post(*loaded)
        delta_table.append(table, pa.Table.from_pylist(rows, DAILY_ERRORS), node, batches.last_id(site.hot))
        return
    (site.root / REQUESTS_TABLE.name).remove_folder()
    site.hot.execute("DELETE FROM synced_tables WHERE name = 'requests'")


def errors_of(site: Site) -> list[tuple[object, ...]]:
    with (
        closing(SnapshotReader(site.hot_log, site.root, columns=HOT.names)) as reader,
        site.database.cursor() as cursor,
    ):
        sql_views.create_temporary(cursor, reader.take_all())
        assert cursor.execute("SELECT sum(requests), count(source) FROM requests WHERE requests > 0").fetchall() == [
            (None, 0)
        ]
        return cursor.execute("SELECT date, path, sum(requests)::INT FROM errors GROUP BY ALL ORDER BY path").fetchall()


@pytest.mark.long
@pytest.mark.parametrize(
    ("site", "point"),
    [
        ("local", None),
        ("local", "before commit"),
        ("local", "before removal"),
        pytest.param("object store", "before removal", marks=pytest.mark.long),
    ],
    indirect=["site"],
)
def test_errors_move_once_however_often_the_move_is_killed(site: Site, point: str | None) -> None:
    site.post(view(event_id="loaded"))
    site.load()
    older, waiting = [error(number) for number in range(4)], error(5)
    as_older(site, older)
    site.post(waiting)

    def die(step: str) -> None:
        if step == point:
            raise Killed

    for _ in range(2 if point else 0):
        delta_table.create(site.root, nodes={REQUESTS_TABLE.name: {batches.node_id(site.hot)}})
        with pytest.raises(Killed):
            older_errors.move(site.hot, site.root, die)
    for _ in range(2):
        durability.prepare(site.hot, site.root)
        dates = [(row["ts"].date(), row["path"]) for row in older]
        assert errors_of(site) == [*((*each, 3) for each in dates), (waiting["ts"].date(), waiting["path"], 1)]
        assert DAILY_ERRORS_TABLE.name not in site.root.folders()
        site.load()
    assert site.faults() == []


@pytest.mark.long
def test_errors_of_a_load_that_was_killed_before_it_came_to_requests_count_once(site: Site) -> None:
    site.post(view(event_id="loaded"))
    site.load()
    as_older(site, [error(0)], loaded=[error(0), error(1)])
    durability.prepare(site.hot, site.root)
    for _ in range(2):
        assert [requests for _, _, requests in errors_of(site)] == [4, 1]
        site.load()
    assert site.faults() == []


def test_errors_in_staged_files_that_the_older_table_lacks_are_counted(site: Site) -> None:
    as_older(site, [error(0)])
    relative = "month=2026-08/staged-1.parquet"
    row = {**error(1), "date": error(1)["ts"].date(), "requests": 3, "first_seen": NOON, "last_seen": NOON}
    stored = pa.Table.from_pylist([row], DAILY_ERRORS).drop_columns(["month"])
    with (site.root / DAILY_ERRORS_TABLE.name / relative).new_file() as local:
        pq.write_table(stored, local)
        file = StagedFile(relative, "2026-08", local.stat().st_size, 1)
    with transaction(site.hot):
        batches.append_staged(site.hot, Staged({DAILY_ERRORS_TABLE.name: (file,)}), NOON.timestamp())
    durability.prepare(site.hot, site.root)
    for _ in range(2):
        assert [requests for _, _, requests in errors_of(site)] == [3, 3]
        site.load()
