"""A lake in an object store gives the answers of a local lake, through all that changes it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from tests.stores.object_store import watched_server
from tests.stores.outage import Way
from tests.warehouse.site import DAY, NOON, Site, hits_of, rank, some_rows, view
from warehouse import doctor
from warehouse.errors import LakeUnreachable
from warehouse.integrity import durability
from warehouse.lake import agents_file, delta_log, delta_table, log_repair, rewriting, roots, table_schema
from warehouse.lake.remote import file_cache
from warehouse.lake.remote.object_path import ObjectPath
from warehouse.maintenance import compact, erase, rollups, upkeep
from warehouse.query import sql
from warehouse.rollups import catalog
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, TABLES

TODAY = date(2026, 10, 1)
SQL = "SELECT date, path, traffic, agent, count(*) AS n FROM hits GROUP BY ALL ORDER BY ALL"
ROWS = hits_of(pa.Table.from_pylist([view()], HOT))
USES_OF_A_TABLE: tuple[Callable[[DeltaTable], object], ...] = (
    lambda table: delta_table.offset(table, "node"),
    lambda table: delta_table.append(table, ROWS, "node", 9),
    lambda table: delta_table.add_files(table, HITS_TABLE, (), "node", 9),
    lambda table: rewriting.replace_files(table, HITS_TABLE, (), ()),
    lambda table: delta_table.delete(table, "path = '/a'"),
    delta_table.vacuum,
)


@pytest.fixture
def remote(bucket: str, tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "remote"
    with closing(Site(folder, root=roots.open_remote(f"{bucket}/lake", folder / "lake"))) as site:
        agents_file.write_agents(site.root, [])
        yield site


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Site]:
    with closing(Site(tmp_path / "local")) as site:
        agents_file.write_agents(site.root, [])
        yield site


def answers(site: Site, project: str = "site") -> list[object]:
    """Return the views report, the rows of an SQL query and the faults that the doctor finds."""
    with closing(site.reports()) as reports:
        ranking = rank(reports, project, NOON - 3 * DAY, NOON + 5 * DAY, NOON + 5 * DAY)
    with sql.run_query(site.hot_log.parent, SQL, site.root) as rows:
        return [ranking.paths.to_pylist(), ranking.human, ranking.ai, rows.read_all().to_pylist(), site.faults()]


@pytest.mark.night
def test_answers_equal_those_of_a_local_lake(local: Site, remote: Site) -> None:
    expected = 0
    for site in (local, remote):
        site.post(*some_rows(0, 30))
        site.load()
        site.stage(some_rows(30, 40))
        site.post(view("/other", project_id="site-2"), *some_rows(70, 10))
    assert answers(remote) == answers(local)
    for site in (local, remote):
        site.load()
        site.compact()
        compact.vacuum(site.hot, site.root, 0)
        expected = rollups.write_due(site.hot, site.root, site.share, TODAY, 0, settle_s=0).rows
        site.post(*some_rows(80, 5))
    assert expected == 81
    assert answers(remote) == answers(local)
    for site in (local, remote):
        site.load()
        assert erase.erase_hits(site.hot, site.root, site.share, erase.Chosen("site-2"), 0) == 1
        rollups.write_stale(site.hot, site.root, site.share, TODAY, 0)
        upkeep.vacuum_rollups(site.hot, site.root, 0)
    result = answers(remote)
    assert result == answers(local)
    assert (result[-1], len(result[3])) == ([], 12)
    assert answers(remote, "site-2")[0] == []


@pytest.mark.long
def test_daily_views_of_an_older_release_are_removed_from_the_store(remote: Site) -> None:
    remote.post(view())
    remote.load()
    for name in ("_delta_log/00000000000000000000.json", "month=2026-09/part-1.parquet"):
        file = remote.root / "daily_views" / name
        assert isinstance(file, ObjectPath)
        file.write(b"counts")
    remote.table(HITS_TABLE).alter.set_table_properties({table_schema.PROPERTY: "2"}, raise_if_not_exists=False)
    durability.prepare(remote.hot, remote.root)
    assert {*remote.root.folders()} == {"_stores", *(spec.name for spec in TABLES)}
    assert len(remote.stored(HITS_TABLE)) == 1
    assert remote.faults() == []


@pytest.mark.long
def test_vacuum_evicts_files_that_another_machine_deleted(remote: Site) -> None:
    deleted = remote.root / "deleted"
    deleted.write(b"hits")
    assert deleted.read_immutable() == b"hits"
    deleted.unlink()
    assert deleted.read_immutable() == b"hits", "from the cache"
    compact.vacuum(remote.hot, remote.root, 0)
    with pytest.raises(FileNotFoundError):
        deleted.read_immutable()


@pytest.mark.night
def test_local_lake_is_moved_by_copying_its_files(local: Site, bucket: str) -> None:
    local.post(*some_rows(0, 10))
    local.load()
    rollups.write_due(local.hot, local.root, local.share, TODAY, 0, settle_s=0)
    local.stage(some_rows(10, 10))
    expected = answers(local)
    folder = local.hot_log.parent
    root = roots.open_remote(bucket, folder / "other")
    for file in (each for each in local.root.rglob("*") if each.is_file() and not each.name.startswith(".")):
        (root / file.relative_to(local.root).as_posix()).write(file)
    with closing(Site(folder, is_new=False, root=root)) as moved:
        root.make_folder()
        assert answers(moved) == expected
        assert moved.load().rows == 10
        assert answers(moved)[1:] == expected[1:]
    assert expected[-1] == []


@pytest.mark.long
def test_reader_finds_a_new_load_and_downloads_a_file_once(remote: Site) -> None:
    with closing(remote.reports()) as reports:
        for count in (10, 20):
            remote.post(*some_rows(count - 10, 10))
            remote.load()
            assert reports.take().hot.num_rows == 0
            ranking = rank(reports, "site", NOON, NOON + 5 * DAY, NOON + 5 * DAY)
            assert sum(ranking.paths["total"].to_pylist()) == len(
                [row for row in some_rows(0, count) if row["traffic"] != "bot"]
            )
    cached = list((remote.root.local / file_cache.FOLDER).iterdir())
    files = [file for spec in TABLES for file in remote.state(spec).files]  # also those that it wrote
    assert 0 < len(cached) <= len(files)


@pytest.mark.long
def test_report_without_a_new_load_sends_no_request(remote: Site) -> None:
    remote.post(*some_rows(0, 10))
    remote.load()
    with closing(remote.reports()) as reports:
        before = rank(reports, "site", NOON, NOON + 5 * DAY, NOON + 5 * DAY)
        remote.post(view("/new"))
        (remote.root / "hits").remove_folder()
        after = rank(reports, "site", NOON, NOON + 5 * DAY, NOON + 5 * DAY)
    assert after.human == before.human + 1


@pytest.mark.long
def test_report_after_a_load_lists_no_rollup_again(
    object_store: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []

    def on_request(method: str, path: str) -> None:
        if "list-type" in path and "rollups" in path:
            listed.append(path)

    with watched_server(object_store, on_request) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        root = roots.open_remote(f"{bucket}/lake", tmp_path / "lake")
        with closing(Site(tmp_path, root=root)) as site, closing(site.reports()) as reports:
            site.post(*some_rows(0, 10), view(ts=NOON - 40 * DAY))
            site.load()
            assert rollups.write_due(site.hot, root, site.share, TODAY, 0, settle_s=0).rollups == 2
            totals, lists = [], []
            for number in (0, 1, 2):
                site.post(view(f"/new-{number}"))
                site.load()
                listed.clear()
                totals.append(rank(reports, "site", NOON - 50 * DAY, NOON + 5 * DAY, NOON + 5 * DAY).human)
                lists.append(len(listed))
    assert lists[0] > 0
    assert lists[1:] == [0, 0]
    assert totals == [totals[0] + number for number in (0, 1, 2)]


@pytest.mark.long
def test_doctor_probes_the_store_of_a_remote_lake_only(local: Site, remote: Site) -> None:
    for site, is_probed in ((local, False), (remote, True)):
        findings = {each.invariant: each.fault for each in doctor.examine(site.hot_log, site.root, site.spill, 0)}
        assert ((doctor.SAFE in findings), findings.get(doctor.SAFE)) == (is_probed, None)


@pytest.mark.long
def test_lost_commit_is_found_and_its_loss_accepted(remote: Site) -> None:
    for path in ("/first", "/second"):
        remote.post(view(path))
        remote.load()
    newest = remote.table(HITS_TABLE).version()
    (remote.root / "hits" / "_delta_log" / f"{newest:020}.json").unlink()
    assert "was stored up to version" in "".join(remote.faults())
    durability.accept_losses(remote.hot, remote.root, 0)
    remote.load()  # the hot log still has the batch of the lost commit
    with closing(remote.reports()) as reports:
        assert rank(reports, "site", NOON, NOON + DAY, NOON + DAY).paths["path"].to_pylist() == ["/first", "/second"]
    assert remote.faults() == []


def test_second_commit_of_a_version_is_refused(remote: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")  # neither has an effect
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    first, second = remote.table(HITS_TABLE), remote.table(HITS_TABLE)
    rows = hits_of(pa.Table.from_pylist([view()], HOT))
    delta_table.append(first, rows, "node", 1)
    with pytest.raises(CommitFailedError):
        delta_table.append(second, rows, "node", 1)
    assert [row["path"] for row in remote.table(HITS_TABLE).to_pyarrow_table().to_pylist()] == ["/a"]


@pytest.mark.long
def test_checkpoints_bound_the_commits_that_opening_a_table_reads(remote: Site) -> None:
    rows = hits_of(pa.Table.from_pylist([view()], HOT))
    for number in range(1, ObjectPath.checkpoint_commits + 2):
        delta_table.append(remote.table(HITS_TABLE), rows, "node", number)
    log = delta_log.read(remote.root / "hits")
    assert log.newest - log.checkpoint < ObjectPath.checkpoint_commits < log.newest


@pytest.mark.parametrize(
    "message",
    [
        "Kernel error: Arrow error: External: Generic S3 error: Error performing GET http://store/x",
        "Kernel error: External: The operation lacked the necessary privileges to complete for path hits/x",
        "Kernel error: External: The operation lacked valid authentication credentials for path hits/x",
    ],
)
def test_error_of_the_store_is_no_fault_of_the_table(remote: Site, message: str) -> None:
    calls: list[int] = []

    def read() -> None:
        calls.append(1)
        raise DeltaError(message)

    with pytest.raises(LakeUnreachable, match="object store of s3://"):
        log_repair.past_broken_checkpoints(remote.root / HITS_TABLE.name, read)
    assert len(calls) == 1, "no checkpoint is looked for"


@pytest.mark.long
def test_nothing_is_lost_while_the_store_is_unreachable(
    object_store: str, bucket: str, closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ("127.0.0.1", closed_port)
    way = Way(("127.0.0.1", int(object_store.rpartition(":")[2])), here)
    way.restore()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{here[0]}:{here[1]}")
    with closing(Site(tmp_path, root=roots.open_remote(f"{bucket}/lake", tmp_path / "lake"))) as site:
        site.post(*some_rows(0, 10))
        site.load()
        with closing(site.reports()) as reports:
            before = rank(reports, "site", NOON, NOON + 5 * DAY, NOON + 5 * DAY)
            tables = [site.table(HITS_TABLE) for _ in USES_OF_A_TABLE]
            way.cut()
            site.post(view("/during"))
            assert rank(reports, "site", NOON, NOON + 5 * DAY, NOON + 5 * DAY).human == before.human + 1
        with pytest.raises(LakeUnreachable, match=f"{bucket}/lake/hits"):
            site.load()
        with pytest.raises(LakeUnreachable):
            site.reports()
        for use, table in zip(USES_OF_A_TABLE, tables, strict=True):
            with pytest.raises(LakeUnreachable):
                use(table)
        with pytest.raises(LakeUnreachable):
            delta_table.open_version(site.root, HITS_TABLE, 1)
        way.restore()
        site.load()
        with closing(site.reports()) as reports:
            assert rank(reports, "site", NOON, NOON + 5 * DAY, NOON + 5 * DAY).human == before.human + 1
        assert (site.waiting(), site.faults()) == (0, [])
    way.cut()


@pytest.mark.long
def test_rollup_of_a_killed_writer_is_ignored_and_its_folder_removed(remote: Site) -> None:
    remote.post(*some_rows(0, 10))
    remote.load()
    folder = catalog.month_folder(remote.root, "2026-09") / "killed"
    (folder / "paths.parquet").write(b"part")
    assert list(catalog.list_rollups(remote.root, "2026-09")) == []
    assert rollups.write_due(remote.hot, remote.root, remote.share, TODAY, 0, settle_s=0).rollups == 1
    (part,) = catalog.choose(remote.root, remote.state(HITS_TABLE).files).parts
    assert part.is_whole
