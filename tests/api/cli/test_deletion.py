"""A deletion does not change the next project with the id, also if another process deletes the project meanwhile."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agent.jobs import configuration, store
from agent.jobs.configuration import Configuration
from api import data_folder, settings
from api.accounts import keys
from api.cli import deletion
from api.settings import Settings
from ingest.hotlog import deduplication
from ingest.visitors.salts import open_salts
from tests.processes.running import readership
from tests.warehouse.site import DAY, NOON, view
from warehouse.control import database, projects
from warehouse.database.pool import Pool
from warehouse.errors import LakeBusy, ProjectGone
from warehouse.hotlog import batches
from warehouse.schema import HOT

LINE = '192.0.2.1 - - [01/Oct/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "Mozilla/5.0 (compatible; GPTBot/1.2)"\n'


@dataclass(frozen=True)
class Content:
    """Number of rows of a project in each store."""

    hits: int
    jobs: int
    valid_keys: int
    event_ids: int
    imported_lines: int


WHOLE = Content(hits=3, jobs=1, valid_keys=1, event_ids=1, imported_lines=1)


@dataclass(frozen=True)
class Folder:
    """A data folder, whose hot log and control database may be in PostgreSQL, for a project `site` with `WHOLE`."""

    settings: Settings
    control: Pool
    environ: dict[str, str]
    log: Path

    def create(self) -> str:
        """Create the project, and return its internal id. Its hits are in two months."""
        internal_id = projects.create(self.control, "site", (), 0).internal_id
        keys.create(self.control, "site", "key", "write", None, int(time.time()))
        changes = {"repository": "https://git.example/docs", "preset": "command", "command": ("true",)}
        configuration.store(self.control, "site", configuration.changed(Configuration(repository=""), changes))
        store.create(self.control, "site", "Fix it", None, time.time_ns() // 1_000)
        rows = [view(), view(ts=NOON - 40 * DAY)]
        with closing(batches.connect(self.settings.hot_log)) as hot:
            batches.append(hot, pa.RecordBatch.from_pylist(rows, HOT), time.time())
            deduplication.add_event_ids(hot, [("hit", "site", "server", "event", int(time.time()))])
        self.run("import", "site", str(self.log))
        return internal_id

    def run(self, *arguments: str) -> Any:
        """Run a command, and return the JSON document that it prints."""
        done = readership("--data", str(self.settings.data), *arguments, env=self.environ)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def salts(self) -> dict[int, bytes]:
        """Return the salt of a day, created if missing."""
        with closing(open_salts(self.settings.database_url, self.settings.data)) as salts:
            return salts.read("site", [20_000])

    def content(self) -> Content:
        with closing(batches.connect(self.settings.hot_log)) as hot, batches.transaction(hot):
            event = tuple(view(event_id="event").values())
            receipt = deduplication.deduplicate(hot, deduplication.Post("site", [event], []), [], int(time.time()))
            assert isinstance(receipt, deduplication.Receipt)
        return Content(
            hits=self.run("sql", "SELECT count(*) AS hits FROM hits WHERE project_id = 'site'")[0]["hits"],
            jobs=len(store.list_page(self.control, "site", None, 50, 0)[0]),
            valid_keys=sum(key.revoked_s is None for key in keys.list_all(self.control, "site")),
            event_ids=receipt.duplicates,
            imported_lines=self.run("import", "site", str(self.log))["known"],
        )


@pytest.fixture
def folder(database_url: str, tmp_path: Path) -> Iterator[Folder]:
    environ = {} if database_url.startswith("sqlite") else {"READERSHIP_DATABASE_URL": database_url}
    chosen = settings.read(environ, tmp_path / "data")
    data_folder.prepare(chosen)
    control = database.connect(chosen.database_url)
    log = tmp_path / "access.log"
    log.write_text(LINE)
    yield Folder(chosen, control, environ, log)
    control.close()


@pytest.mark.long
def test_deletion_leaves_nothing_of_its_project(folder: Folder) -> None:
    internal_id, salts = folder.create(), folder.salts()
    assert folder.salts() == salts
    assert deletion.delete_project(folder.settings, folder.control, "site", internal_id, cached_s=0) == WHOLE.hits
    projects.create(folder.control, "site", (), 0)
    assert folder.content() == Content(0, 0, 0, 0, 0)
    assert folder.salts() != salts


@pytest.mark.long
@pytest.mark.parametrize(
    ("database_url", "step"),
    [("sqlite", "before revoke"), ("sqlite", "before erase"), ("postgresql", "before forget")],
    indirect=["database_url"],
)
def test_second_deletion_changes_nothing_of_a_project_created_after_the_first(folder: Folder, step: str) -> None:
    internal_id = folder.create()
    delete = partial(deletion.delete_project, folder.settings, folder.control, "site", internal_id, cached_s=0)

    def replace(reached: str) -> None:
        """Delete the project as another process does, and create one with the same id."""
        if reached == step:
            delete()
            folder.create()

    with pytest.raises(ProjectGone, match="another process has deleted project 'site'"):
        delete(on_point=replace)
    assert folder.content() == WHOLE
    assert [each["fault"] for each in folder.run("doctor") if each["fault"]] == []


@pytest.mark.long
def test_last_step_of_a_deletion_excludes_that_of_another_one(folder: Folder) -> None:
    internal_id = folder.create()
    delete = partial(deletion.delete_project, folder.settings, folder.control, "site", internal_id, cached_s=0)
    refused = []

    def delete_again(reached: str) -> None:
        if reached == "before delete":
            with pytest.raises(LakeBusy):
                delete(wait_s=0)
            refused.append(reached)

    assert delete(on_point=delete_again) == WHOLE.hits
    assert refused == ["before delete"]
    projects.create(folder.control, "site", (), 0)
    assert folder.content() == Content(0, 0, 0, 0, 0)
