"""`files` lists the Parquet files of a table, and none that compaction has replaced."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from api import data_folder, settings
from tests.api.cli.console import Imported
from tests.processes.running import new_key, readership
from tests.warehouse.site import NOON, ROOT, view
from warehouse.database.transaction import transaction
from warehouse.hotlog import batches
from warehouse.schema import HOT

LOG = str(ROOT / "sample_data" / "access.log")
VIEWS = json.loads((ROOT / "sample_data" / "expected_views.json").read_text())["page_views"]


def run(data: Path, *arguments: str) -> tuple[str, str]:
    done = readership("--data", str(data), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def compacted(imported: Imported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with the sample log in two projects, compacted: each day has replaced files."""
    data = imported.copy(tmp_path_factory.mktemp("files"))
    new_key(data, "two")
    run(data, "import", "two", LOG)
    run(data, "compact")
    return data


def rows(source: str) -> int:
    with duckdb.connect() as database:
        [[count]] = database.sql(f"SELECT count(*) FROM {source}").fetchall()
    return int(count)


@pytest.mark.long
def test_files_of_hits_contain_each_hit_once(compacted: Path) -> None:
    out, err = run(compacted, "files", "hits")
    assert err == ""
    assert rows(f"read_parquet({out.splitlines()})") == 2 * VIEWS
    assert rows(f"read_parquet('{compacted}/lake/hits/**/*.parquet')") > 3 * VIEWS  # replaced files count too


def test_sql_of_hits_has_the_partition_column_in_duckdb(compacted: Path) -> None:
    out, _ = run(compacted, "files", "hits", "--sql")
    assert out.startswith("read_parquet([")
    assert rows(out) == 2 * VIEWS
    assert rows(f"{out.strip()} WHERE date = DATE '2026-09-10'") > 0


def test_sql_of_daily_views_adds_up_to_the_hits(compacted: Path) -> None:
    out, _ = run(compacted, "files", "daily_views", "--sql")
    with duckdb.connect() as database:
        assert database.sql(f"SELECT sum(views) FROM {out}").fetchall() == [(2 * VIEWS,)]


def test_statement_of_the_docs_over_the_files_of_hits_has_the_rows_of_the_view(compacted: Path) -> None:
    page = (ROOT / "docs" / "data.md").read_text()
    statement = page.partition("```sql\n")[2].partition("```")[0]
    assert "delta_scan('data/lake/hits')" in statement  # needs an extension that PyPI does not have
    files = run(compacted, "files", "hits", "--sql")[0].strip()
    printed = run(compacted, "files", "daily_views", "--sql")[0]
    with duckdb.connect() as database:
        grouped = database.sql(statement.replace("delta_scan('data/lake/hits')", files)).order("ALL").to_arrow_table()
        assert database.sql(f"FROM {printed}").order("ALL").to_arrow_table() == grouped
    view = run(compacted, "sql", "FROM daily_views ORDER BY ALL", "--format", "json")[0]
    assert json.loads(view) == [{**row, "date": str(row["date"])} for row in grouped.to_pylist()]


def test_daily_views_have_no_paths_and_the_message_has_the_statement(compacted: Path) -> None:
    for arguments in ((), ("--format", "json")):
        done = readership("--data", str(compacted), "files", "daily_views", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(
            "Error: daily_views has no files: it is computed from hits, by SELECT project_id, "
        )


def test_json_and_ndjson_have_the_rows_of_each_file(compacted: Path) -> None:
    document = json.loads(run(compacted, "files", "hits", "--format", "json")[0])
    lines = [json.loads(line) for line in run(compacted, "files", "hits", "--format", "ndjson")[0].splitlines()]
    assert document == lines
    assert set(document[0]) == {"path", "partition", "size", "rows"}
    assert sum(file["rows"] for file in document) == 2 * VIEWS
    assert all(file["size"] == Path(file["path"]).stat().st_size for file in document)


def test_hits_that_wait_in_the_hot_log_are_counted_on_standard_error(compacted: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(compacted, tmp_path / "data"))
    with closing(batches.connect(data / "hot.sqlite")) as hot, transaction(hot):
        batches.append(hot, pa.RecordBatch.from_pylist([view()], HOT), NOON.timestamp())
    for arguments in (("hits",), ("daily_views", "--sql")):
        out, err = run(data, "files", *arguments)
        assert err == "1 hit is in the hot log and in no file yet; to load the hot log, run readership flush\n"
    run(data, "flush")
    out, err = run(data, "files", "hits")
    assert (rows(f"read_parquet({out.splitlines()})"), err) == (2 * VIEWS + 1, "")


def test_table_without_files_has_no_paths_and_no_sql(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    assert run(tmp_path / "data", "files", "hits") == ("", "")
    done = readership("--data", str(tmp_path / "data"), "files", "hits", "--sql")
    message = "Error: table hits has no files yet; run readership flush if hits wait in the hot log\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_readme_of_the_lake_explains_how_to_read_it(compacted: Path) -> None:
    text = (compacted / "lake" / "README.md").read_text()
    assert "readership files hits --sql" in text
    assert "Never read all Parquet files" in text


def test_outdated_readme_of_the_lake_is_replaced(tmp_path: Path) -> None:
    new_key(tmp_path / "data")
    readme = tmp_path / "data" / "lake" / "README.md"
    text = readme.read_text()
    readme.write_text("older")
    data_folder.prepare(settings.read({}, tmp_path / "data"))
    assert readme.read_text() == text
