"""The commands that change data, on two nodes with one PostgreSQL database and one lake: what one does, both see.

Each test has a project of its own, and leaves a lake in which the doctor finds no fault.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.processes.running import readership
from tests.stores.postgresql import new_database
from warehouse.control import database, projects
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.hotlog import batches
from warehouse.hotlog.connection import server_of

pytestmark = pytest.mark.long

HUMAN = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"
LINE = f'192.0.2.1 - - [{{date}}:12:00:00 +0000] "GET /{{path}} HTTP/1.1" 200 1 "-" "{HUMAN}"\n'
VIEWS = 4
"""Number of views of a new project: of two paths, on a day of each of two months."""


@dataclass
class Nodes:
    """Two data folders with the same lake, and the URL of their database. They alternate in `run`."""

    folder: Path
    environ: dict[str, str]
    turn: int = 0

    @property
    def lake(self) -> Path:
        return self.folder / "first" / "lake"

    def run(self, *arguments: str, status: int = 0, **environ: str) -> str:
        """Run a command on the node whose turn it is, and return its output."""
        self.turn += 1
        data = self.folder / ("first", "second")[self.turn % 2]
        done = readership("--data", str(data), *arguments, env={**self.environ, **environ})
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    def count(self, project: str) -> tuple[int, int]:
        """Return the number of a project's rows in `hits` and the sum in `daily_views`, on the other node."""
        query = (
            f"SELECT (SELECT count(*) FROM hits WHERE project_id = '{project}') AS hits,"
            f" (SELECT coalesce(sum(views), 0)::BIGINT FROM daily_views WHERE project_id = '{project}') AS views"
        )
        answer = json.loads(self.run("sql", query, "--format", "ndjson"))
        return answer["hits"], answer["views"]

    def log(self, project: str, *dates: str) -> Path:
        """Write a log with two views of people on each date, such as 01/Oct/2026."""
        log = self.folder / f"{project}.log"
        log.write_text("".join(LINE.format(date=date, path=f"{project}/{path}") for date in dates for path in "ab"))
        return log

    def import_log(self, project: str, log: Path) -> dict[str, int]:
        """Import a log, also after a test has accepted the loss of the hot log; return the summary."""
        summary: dict[str, int] = json.loads(self.run("import", "--despite-loss", project, str(log)))
        return summary

    def add(self, project: str) -> Path:
        """Import the log of a project, and return it."""
        log = self.log(project, "30/Sep/2026", "01/Oct/2026")
        assert self.import_log(project, log)["human"] == VIEWS
        return log

    def connection(self) -> PostgresqlConnection:
        server = server_of(self.environ["READERSHIP_DATABASE_URL"])
        assert server is not None
        hot = batches.connect(server)
        assert isinstance(hot, PostgresqlConnection)
        return hot


@pytest.fixture(scope="module")
def nodes(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("commands")
    nodes = Nodes(folder, {"READERSHIP_DATABASE_URL": new_database(postgresql)})
    for name in ("first", "second"):
        (folder / name).mkdir()
    nodes.lake.mkdir()
    (folder / "second" / "lake").symlink_to(nodes.lake)
    nodes.run("project", "create", "compacted")
    control = database.connect(nodes.environ["READERSHIP_DATABASE_URL"])
    for project in ("reclassified", "deleted", "old", "recovered", "lost"):
        projects.create(control, project, (), 0)
    control.close()
    yield nodes
    nodes.run("doctor")


def test_log_that_another_node_imported_adds_nothing_and_compaction_changes_no_count(nodes: Nodes) -> None:
    log = nodes.add("compacted")
    assert nodes.import_log("compacted", log)["known"] == VIEWS
    with log.open("a") as file:
        file.write(LINE.format(date="01/Oct/2026", path="compacted/c"))
    assert nodes.import_log("compacted", log)["human"] == 1
    assert json.loads(nodes.run("compact"))["partitions"] >= 1
    assert json.loads(nodes.run("compact"))["partitions"] == 0
    assert nodes.count("compacted") == (VIEWS + 1, VIEWS + 1)


def test_reclassification_on_one_node_is_seen_by_the_other(nodes: Nodes) -> None:
    nodes.add("reclassified")
    table = DeltaTable(str(nodes.lake / "hits"))
    table.update(updates={"ruleset": "'older'", "traffic": "'bot'"}, predicate="project_id = 'reclassified'")
    nodes.run("flush")  # records the commit
    assert json.loads(nodes.run("reclassify", "--dry-run"))["hits"] == VIEWS
    done = json.loads(nodes.run("reclassify"))
    assert (done["days"], done["hits"], done["moves"]["hits"]) == (2, VIEWS, VIEWS)
    assert nodes.count("reclassified") == (VIEWS, VIEWS)


def test_deleted_project_is_gone_on_both_nodes_and_may_be_created_again(nodes: Nodes) -> None:
    log = nodes.add("deleted")
    assert json.loads(nodes.run("project", "delete", "deleted", "--yes"))["hits"] == VIEWS
    assert nodes.count("deleted") == (0, 0)
    assert "no project 'deleted'" in nodes.run("import", "deleted", str(log), status=1)
    nodes.run("project", "create", "deleted")
    nodes.import_log("deleted", log)
    assert nodes.count("deleted") == (VIEWS, VIEWS)


def test_retention_deletes_old_days_on_both_nodes(nodes: Nodes) -> None:
    nodes.import_log("old", nodes.log("old", "01/Jan/2006", "02/Jan/2006", "01/Oct/2026"))
    assert nodes.count("old") == (6, 6)
    nodes.run("retention", "--yes")
    assert json.loads(nodes.run("retention", READERSHIP_RETENTION_DAYS="7000"))["removed"] == 4
    assert nodes.count("old") == (2, 2)


def test_older_hot_log_is_refused_until_its_loss_is_accepted_while_no_node_runs(nodes: Nodes) -> None:
    nodes.add("recovered")
    with closing(nodes.connection()) as hot:
        through = batches.last_id(hot) - 1
        for table, column in (("batches", "id"), ("staged", "id"), ("loads", "through_id")):
            hot.execute(f"DELETE FROM {table} WHERE {column} > %s", (through,))
        hot.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = 'batches'", (through,))
    assert "is older than the lake" in nodes.run("flush", status=1)
    assert "is older than the lake" in nodes.run("recover")
    with closing(nodes.connection()):  # as a service of another node has one
        assert "1 connection of other processes" in nodes.run("recover", "--accept-loss", status=1)
    nodes.run("recover", "--accept-loss")
    assert json.loads(nodes.run("recover")) == []
    assert nodes.count("recovered") == (VIEWS, VIEWS)
    log = nodes.log("recovered", "02/Oct/2026")
    assert "is lost, and these lines are older" in nodes.run("import", "recovered", str(log), status=1)
    with closing(nodes.connection()) as hot:
        assert batches.last_id(hot) == through + 1


def test_last_commit_of_a_table_that_is_lost_is_loaded_again(nodes: Nodes) -> None:
    nodes.add("lost")
    log = nodes.lake / "hits" / "_delta_log"
    max(log.glob("*.json")).unlink()
    assert "was stored up to version" in nodes.run("recover", "--accept-loss")
    assert json.loads(nodes.run("recover")) == []
    nodes.run("rebuild")
    assert nodes.count("lost") == (VIEWS, VIEWS)
