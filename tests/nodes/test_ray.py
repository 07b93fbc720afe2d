"""Batch work in a Ray cluster of two raylets is exact, also if a worker is killed; an unusable cluster is an error.

All tests of Ray are in this file, because they share one cluster, which takes several seconds to start.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cluster.raylets import client_address, cluster
from ingest.imports import log_stream
from ingest.imports.importer import import_logs
from tests.ingest.formats.test_clf import line
from tests.programs import skip
from tests.warehouse.batch.tasks import DieOnce, divide, fail, process_id, square
from tests.warehouse.rollups.counted import cells, stored
from tests.warehouse.site import DAY, NOON, ROOT, SECRET, Site, some_rows, view
from warehouse.batch import driver
from warehouse.batch.driver import Executor, Item, Result
from warehouse.batch.ray_workers import CONNECTS_MAX, initialize, ray_tasks
from warehouse.errors import ClusterUnusable, ItemFailed
from warehouse.lake.roots import LocalPath
from warehouse.maintenance import rollups
from warehouse.maintenance.rollups import Written
from warehouse.rollups import catalog
from warehouse.tables import HITS_TABLE

pytestmark = [pytest.mark.long, pytest.mark.installed]

CLIENT_PORTS = range(20_000, 32_000)
"""Ports that Linux gives to no socket that asks for any port. Ray takes the number of a port, and shares none."""
CLIENT = "CLIENT"
"""Name of the address of the cluster's client server in the fixture `ray`."""
EXPECTED = json.loads((ROOT / "sample_data" / "expected_views.json").read_text())


@pytest.fixture(scope="module")
def ray() -> Iterator[Mapping[str, str]]:
    """Yield the environment of a cluster, which this process has, too."""
    if find_spec("ray") is None:
        skip("Ray", "make .venv/.ray")
    port = CLIENT_PORTS[os.getpid() % len(CLIENT_PORTS)]
    with cluster(port) as environ, pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            if not name.startswith("READERSHIP_"):
                patch.setenv(name, value)
        yield {**environ, CLIENT: client_address(port)}


def test_tasks_run_on_both_machines_in_the_order_of_the_items(ray: Mapping[str, str], tmp_path: Path) -> None:
    with ray_tasks(ray["READERSHIP_RAY"], None, LocalPath(tmp_path)) as tasks:
        assert tasks.size == 2
        squares = driver.run(tasks, square, range(20), is_ordered=True)
        assert [outcome.result() for _, outcome in squares] == [number * number for number in range(20)]
        processes = {outcome.result() for _, outcome in driver.run(tasks, process_id, range(20))}
    assert os.getpid() not in processes
    assert not list(tmp_path.iterdir())  # the files of the check are deleted


def test_task_of_a_killed_process_is_repeated(
    ray: Mapping[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = tmp_path / "died"
    lake = tmp_path / "lake"
    with ray_tasks(ray["READERSHIP_RAY"], 1, LocalPath(lake)) as tasks:
        assert [outcome.result() for _, outcome in driver.run(tasks, DieOnce(square, marker), [2, 3])] == [4, 9]
    assert marker.exists()
    assert capsys.readouterr().out == ""


def test_error_of_a_task_is_as_on_this_machine(ray: Mapping[str, str], tmp_path: Path) -> None:
    with ray_tasks(ray["READERSHIP_RAY"], 1, LocalPath(tmp_path)) as tasks:
        with pytest.raises(ZeroDivisionError) as caught:
            tasks.submit(divide, 0).result()
        assert "return 1 / number" in str(caught.value.__cause__)
        with pytest.raises(ItemFailed, match="one and two"):
            tasks.submit(fail, 2).result()


class Dying:
    """An executor of which a process is killed once, after it has done its work and before the result is sent."""

    def __init__(self, tasks: Executor, marker: Path) -> None:
        self.tasks, self.marker = tasks, marker
        self.size, self.has_died = tasks.size, tasks.has_died

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        return self.tasks.submit(DieOnce(function, self.marker), item)  # type: ignore[arg-type]


@contextmanager
def dying(address: str, root: Path, marker: Path) -> Iterator[Dying]:
    with ray_tasks(address, None, LocalPath(root)) as tasks:
        yield Dying(tasks, marker)


def test_rebuild_is_exact_if_a_worker_is_killed_after_it_wrote_its_files(
    ray: Mapping[str, str], tmp_path: Path
) -> None:
    rows = [*some_rows(0, 20), view(ts=NOON + 30 * DAY), view(ts=NOON + 60 * DAY)]
    with closing(Site(tmp_path / "data")) as site:
        site.post(*rows)
        site.load()
        with dying(ray["READERSHIP_RAY"], site.root, tmp_path / "died") as tasks:
            assert rollups.rebuild(
                site.hot, site.root, site.share, (NOON + 90 * DAY).date(), 0, executor=tasks
            ) == Written(rollups=3, rows=22)
        assert (tmp_path / "died").exists()
        chosen = catalog.choose(site.root, site.state(HITS_TABLE).files)
        assert chosen.uncovered == ()
        assert sum((stored(each.rollup)["paths"] for each in chosen.parts), Counter()) == cells(rows)["paths"]
        assert site.faults() == []


def test_import_is_exact_if_a_worker_is_killed_after_it_wrote_its_files(
    ray: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_stream, "BLOCK_BYTES", 100_000)
    log = tmp_path / "a.log"
    log.write_bytes(b"".join(line(b"GET /%d HTTP/1.1" % number) + b"\n" for number in range(20_000)))
    with closing(Site(tmp_path / "data")) as site:
        with dying(ray["READERSHIP_RAY"], site.root, tmp_path / "died") as tasks:
            summary = import_logs(
                site.hot, site.root, "site", [str(log)], SECRET, (NOON + DAY).timestamp, executor=tasks
            )
        assert (tmp_path / "died").exists()
        assert summary.lines == summary.page_views == 20_000
        assert Counter(row["path"] for row in site.stored(HITS_TABLE)) == {f"/{n}": 1 for n in range(20_000)}
        assert import_logs(site.hot, site.root, "site", [str(log)], SECRET, (NOON + DAY).timestamp).known == 20_000
        assert site.faults() == []


def test_commands_of_a_machine_that_is_not_part_of_the_cluster_have_the_result_of_local_ones(
    ray: Mapping[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(line() + b"\n")

    def content(data: Path, **environ: str) -> list[Any]:
        """Import two logs into a new folder, compact it, and return what commands print about it."""

        def run(*arguments: str, is_local: bool = False) -> Any:
            command = [str(Path(sys.executable).with_name("readership")), "--data", str(data), *arguments]
            chosen = {**os.environ, **({} if is_local else environ)}
            done = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False, timeout=240)
            assert done.returncode == 0
            assert all("address lists" in line for line in done.stderr.splitlines())
            return json.loads(done.stdout)

        run("project", "create", "site")
        imported = run("import", "site", str(ROOT / "sample_data" / "access.log"))
        assert imported.pop("seconds") * imported.pop("lines_per_s") > 0
        run("import", "site", str(log), is_local=True)  # a second file, which the compaction merges
        assert run("compact")["partitions"] == 2  # the day of the line, and the month of its request
        assert run("rebuild")["rollups"] == 1
        assert [each["fault"] for each in run("doctor") if each["fault"]] == []
        views = run("sql", "SELECT path, traffic, count(*) AS views FROM hits GROUP BY ALL ORDER BY ALL")
        return [imported, views]

    remote = content(tmp_path / "remote", **{**ray, "READERSHIP_RAY": ray[CLIENT]})
    assert remote == content(tmp_path / "local")
    assert remote[0]["page_views"] == EXPECTED["page_views"]


def test_commands_print_what_they_print_without_ray(ray: Mapping[str, str], tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("readership")), "--data", str(tmp_path / "data")]

    def run(*arguments: str, is_local: bool = False) -> dict[str, Any]:
        environ = {**os.environ, **({} if is_local else ray)}
        done = subprocess.run([*command, *arguments], env=environ, capture_output=True, text=True, check=True)
        assert all("address lists" in line for line in done.stderr.splitlines())
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    run("project", "create", "site", is_local=True)
    imported = run("import", "site", str(ROOT / "sample_data" / "access.log"))
    assert imported["page_views"] == EXPECTED["page_views"]


@pytest.mark.parametrize(("aborted", "calls"), [(0, 1), (CONNECTS_MAX - 1, CONNECTS_MAX), (CONNECTS_MAX, CONNECTS_MAX)])
def test_aborted_connection_is_tried_again(aborted: int, calls: int) -> None:
    called: list[int] = []

    def init() -> None:
        called.append(1)
        if len(called) <= aborted:
            raise ConnectionAbortedError("Starting Ray client server failed")

    with pytest.raises(ConnectionAbortedError) if aborted == CONNECTS_MAX else nullcontext():
        initialize(init)
    assert len(called) == calls


def test_machine_that_does_not_see_the_lake_is_named(ray: Mapping[str, str], tmp_path: Path) -> None:
    """The lake is below an open folder of this process, which is no folder of a process of the cluster."""
    (tmp_path / "lake").mkdir()
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        lake = Path(f"/proc/self/fd/{folder}/lake")
        with (
            pytest.raises(
                ClusterUnusable, match=r"^the machine 127\.0\.0\.[23] of the Ray cluster has another lake at /proc/self"
            ),
            ray_tasks(ray["READERSHIP_RAY"], 1, LocalPath(lake)),
        ):
            pass
    finally:
        os.close(folder)


def test_cluster_that_does_not_answer_is_an_error(ray: Mapping[str, str], closed_port: int, tmp_path: Path) -> None:
    address = f"127.0.0.1:{closed_port}"
    with pytest.raises(ClusterUnusable, match=address), ray_tasks(address, 1, LocalPath(tmp_path)):
        pass
