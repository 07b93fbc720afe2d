"""A query of the owner sees the files and the hot rows of one snapshot, and changes nothing."""

import hashlib
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import warehouse
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.errors import InvalidSql, NoData
from warehouse.lake.agents_file import write_agents
from warehouse.query import sql
from warehouse.schema import AGENTS, DAILY_ERRORS, DAILY_VIEWS, HITS
from warehouse.tables import HITS_TABLE, TABLES

GPTBOT = {"name": "GPTBot", "operator": "OpenAI", "purpose": "training", "pattern": "GPTBot"}
BY_PATH = "GROUP BY path ORDER BY path"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder whose name has characters with a meaning in SQL and in DuckDB's file patterns."""
    return tmp_path / "o'ne data*?"


@pytest.fixture
def site(folder: Path) -> Iterable[Site]:
    """Yield a site with one view in the lake and two in the hot log."""
    site = Site(folder)
    write_agents(site.root, [GPTBOT])
    (folder / "run").mkdir()
    site.post(view(path="/a", traffic="ai", agent="GPTBot"))
    site.load()
    site.post(view(path="/a", traffic="ai", agent="GPTBot"), view(path="/b"))
    yield site
    site.close()


@pytest.fixture
def connection(site: Site, folder: Path) -> Iterable[duckdb.DuckDBPyConnection]:
    connection = warehouse.connect(folder)
    yield connection
    connection.close()


def ask(folder: Path, question: str, timeout_s: float = 0) -> list[dict[str, object]]:
    with sql.run_query(folder, question, timeout_s=timeout_s) as answer:
        rows: list[dict[str, object]] = answer.read_all().to_pylist()
    return rows


def counted(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    hits = dict(connection.sql(f"SELECT path, count(*) FROM hits {BY_PATH}").fetchall())
    assert dict(connection.sql(f"SELECT path, sum(views) FROM daily_views {BY_PATH}").fetchall()) == hits
    return hits


def contents(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file under a folder."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_hits_and_daily_views_have_loaded_and_hot_rows(site: Site, folder: Path) -> None:
    expected = [{"path": "/a", "n": 2}, {"path": "/b", "n": 1}]
    assert ask(folder, f"SELECT path, count(*) AS n FROM hits {BY_PATH}") == expected
    assert ask(folder, f"SELECT path, sum(views) AS n FROM daily_views {BY_PATH}") == expected


def test_agents_can_be_joined(site: Site, folder: Path) -> None:
    joined = "SELECT agents.operator, count(*) AS n FROM hits JOIN agents ON agent = name GROUP BY ALL"
    assert ask(folder, joined) == [{"operator": "OpenAI", "n": 2}]


def test_hits_are_counted_before_the_first_load(tmp_path: Path) -> None:
    site = Site(tmp_path / "new")
    write_agents(site.root, [])
    site.post(view(path="/only", ts=NOON.replace(hour=23) + DAY))
    site.close()
    days = "SELECT CAST(date AS VARCHAR) AS day, path FROM {} WHERE project_id = 'site'"
    expected = [{"day": "2026-09-16", "path": "/only"}]
    assert ask(tmp_path / "new", days.format("hits")) == expected
    assert ask(tmp_path / "new", days.format("daily_views")) == expected


def test_statements_that_only_read_are_allowed(site: Site, folder: Path) -> None:
    for question, first in (
        ("SHOW TABLES", "agents"),
        ("DESCRIBE daily_views", "project_id"),
        ("SUMMARIZE agents", "name"),
        ("FROM agents;", "GPTBot"),
        ("SELECT name FROM agents; -- and a last word", "GPTBot"),
        ("WITH named AS (SELECT name FROM agents) FROM named", "GPTBot"),
    ):
        assert next(iter(ask(folder, question)[0].values())) == first


def test_any_other_statement_is_refused_and_changes_nothing(site: Site, folder: Path, tmp_path: Path) -> None:
    before = contents(site.root)
    live = site.state(HITS_TABLE).files[0].path.replace("'", "''")
    for question in (
        "COPY (SELECT 1) TO '{file}'",
        "WITH c AS (COPY (SELECT 1) TO '{file}') FROM c",
        "WITH c AS (COPY (SELECT 1) TO '{live}' (USE_TMP_FILE false)) FROM c",
        "WITH gone AS (DELETE FROM copied.hot_hits RETURNING *) FROM gone",
        "CREATE TABLE t AS SELECT 1",
        "ATTACH '{file}'",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY (SELECT 1) TO '{file}'",
        "EXPLAIN ANALYZE SELECT 1",
        "",
    ):
        with pytest.raises(InvalidSql, match="a query must be one SELECT, DESCRIBE, SHOW or SUMMARIZE"):
            ask(folder, question.format(file=tmp_path / "written", live=live))
        assert not (tmp_path / "written").exists(), question
        assert contents(site.root) == before, question


def test_pivot_without_values_is_refused_with_advice_and_allowed_with_them(site: Site, folder: Path) -> None:
    with pytest.raises(InvalidSql, match=r"name the values of a PIVOT, as in PIVOT daily_views ON traffic IN \("):
        ask(folder, "PIVOT daily_views ON traffic USING sum(views)")
    named = "PIVOT daily_views ON traffic IN ('human', 'ai', 'bot') USING sum(views) GROUP BY path ORDER BY path"
    assert ask(folder, named) == [
        {"path": "/a", "human": None, "ai": 2, "bot": None},
        {"path": "/b", "human": 1, "ai": None, "bot": None},
    ]


def test_explain_is_refused_with_advice_and_works_on_a_connection(
    site: Site, folder: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    with pytest.raises(InvalidSql, match=r"EXPLAIN works on warehouse.connect\(\)"):
        ask(folder, "EXPLAIN SELECT * FROM hits")
    assert connection.execute("EXPLAIN SELECT * FROM hits").fetchall()


def test_invalid_query_raises_the_message_of_duckdb(site: Site, folder: Path) -> None:
    with pytest.raises(InvalidSql, match="syntax error at or near"):
        ask(folder, "SELEC")
    with pytest.raises(InvalidSql, match='Referenced column "nothing" not found'):
        ask(folder, "SELECT nothing FROM hits")
    with pytest.raises(
        InvalidSql,
        match=r"(?s)name visits does not exist.*The views are hits, asset_loads, requests, events, errors, daily_v",
    ):
        ask(folder, "FROM visits")


def test_sum_is_an_int64_unless_a_value_is_too_large(site: Site, folder: Path) -> None:
    question = "SELECT sum(views) AS few, sum(1::HUGEINT << 100) AS many FROM daily_views"
    with sql.run_query(folder, question) as answer:
        assert str(answer.schema.field("few").type) == "int64"
        assert answer.read_all()["many"].to_pylist() == [2 * 2**100]


def test_result_is_streamed(site: Site, folder: Path) -> None:
    endless = "SELECT i FROM range(1000000000000) AS t (i)"
    with sql.run_query(folder, endless) as answer:
        assert answer.read_next_batch()["i"][0].as_py() == 0


def test_row_that_cannot_be_computed_raises_the_message_of_duckdb_when_it_is_read(site: Site, folder: Path) -> None:
    late = "SELECT CASE WHEN i = 9000000 THEN error('no such row') ELSE i END AS i FROM range(10000000) AS t (i)"
    with sql.run_query(folder, late) as answer:
        assert answer.read_next_batch().num_rows > 0
        with pytest.raises(InvalidSql, match="no such row"):
            answer.read_all()


@pytest.mark.long
def test_query_that_exceeds_the_memory_limit_is_refused_with_advice(site: Site, folder: Path) -> None:
    with pytest.raises(InvalidSql, match="more than 1GB of memory: select fewer days or columns"):
        ask(folder, "SELECT list(repeat('x', 1000) || i) AS all FROM range(2000000) AS t (i)")


def test_query_that_takes_too_long_ends_with_advice(site: Site, folder: Path) -> None:
    with pytest.raises(InvalidSql, match="longer than its time limit: .* raise --timeout"):
        ask(folder, "SELECT count(*) FROM range(1000000000000) AS t (i) WHERE i % 7 = 8", timeout_s=0.05)


def test_rows_of_a_query_that_takes_too_long_end_with_advice(site: Site, folder: Path) -> None:
    endless = "SELECT i FROM range(1000000000000) AS t (i)"
    advice = pytest.raises(InvalidSql, match="longer than its time limit")
    with advice, sql.run_query(folder, endless, timeout_s=0.5) as answer:
        deque(answer, maxlen=0)


def test_sums_of_many_rows_are_narrowed_in_order_with_their_names(site: Site, folder: Path) -> None:
    question = (
        "SELECT sum(i) AS n, sum(-i) AS n, i::VARCHAR AS text FROM range(100000) AS t (i) GROUP BY i ORDER BY i DESC"
    )
    with sql.run_query(folder, question) as answer:
        assert [(field.name, str(field.type)) for field in answer.schema] == [
            ("n", "int64"),
            ("n", "int64"),
            ("text", "string"),
        ]
        rows = answer.read_all()
    assert rows.column(0).to_pylist() == [-number for number in rows.column(1).to_pylist()] == [*range(99_999, -1, -1)]


@pytest.mark.long
def test_process_that_limits_its_memory_cannot_take_more(folder: Path) -> None:
    script = "from warehouse.query import sql; sql.limit_memory(); bytearray({} * 1024**3)"
    for gib, error in ((1, b""), (3, b"MemoryError")):
        ended = subprocess.run([sys.executable, "-c", script.format(gib)], capture_output=True, check=False)
        assert (ended.returncode == 0, ended.stderr.strip().rpartition(b"\n")[2]) == (not error, error)


def test_connection_sees_its_snapshot_whatever_is_written_later(
    site: Site, connection: duckdb.DuckDBPyConnection, folder: Path
) -> None:
    site.post(view(path="/a"), view(path="/new"))
    site.load()
    site.compact(small_files_max=0)
    assert counted(connection) == {"/a": 2, "/b": 1}
    with warehouse.connect(str(folder)) as later:
        assert counted(later) == {"/a": 3, "/b": 1, "/new": 1}


def test_cursors_see_the_snapshot_of_their_connection(site: Site, connection: duckdb.DuckDBPyConnection) -> None:
    with connection.cursor() as cursor:
        assert counted(cursor) == counted(connection)


def test_each_column_has_its_comment_in_sql_and_in_the_files(site: Site, connection: duckdb.DuckDBPyConnection) -> None:
    comments_in_sql = connection.sql(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal"
    ).fetchall()
    for name, schema in (("hits", HITS), ("daily_views", DAILY_VIEWS), ("errors", DAILY_ERRORS), ("agents", AGENTS)):
        comments = {field.name: field.metadata[b"comment"].decode() for field in schema}
        assert {column: comment for table, column, comment in comments_in_sql if table == name} == comments
    for spec in TABLES:
        fields = site.table(spec).schema().fields
        assert {field.name: field.metadata["comment"] for field in fields} == {
            field.name: field.metadata[b"comment"].decode() for field in spec.schema
        }
    assert pq.read_schema(site.root / "agents.parquet").equals(AGENTS, check_metadata=False)
    assert (
        pq.read_schema(site.root / "agents.parquet").field("name").metadata[b"comment"]
        == b"name of the AI agent, as in hits.agent"
    )


FORBIDDEN = [
    "INSERT INTO hits SELECT * FROM hits",
    "INSERT INTO agents VALUES ('a', 'b', 'c', 'd')",
    "UPDATE hits SET traffic = 'human'",
    "DELETE FROM daily_views",
    "COPY hits TO '{out}/hits.parquet'",
    "COPY hits TO '{lake}/hits/new.parquet'",
    "COPY (SELECT 1) TO '{live}'",
    "COPY (SELECT 1 AS date) TO '{lake}/hits' (FORMAT parquet, PARTITION_BY date, OVERWRITE true)",
    "EXPORT DATABASE '{out}'",
    "ATTACH '{out}/other.duckdb'",
    "ATTACH '{hot}' (TYPE sqlite)",
    "INSTALL delta",
    "LOAD delta",
    "FROM read_text('/etc/hostname')",
    "FROM glob('{lake}/*')",
    "FROM 'https://example.com/a.parquet'",
    "FROM delta_scan('{lake}/hits')",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET autoinstall_known_extensions = true",
    "SET lock_configuration = false",
    "SET temp_directory = '{out}'",
]
"""Statements that write a file or a table, open another file, or allow one of these."""


def test_connection_writes_no_file_and_opens_only_those_of_the_tables(
    site: Site, connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    before, out = contents(site.root), tmp_path / "out"
    out.mkdir()
    live = site.state(HITS_TABLE).files[0].path
    paths = {"out": out, "lake": site.root, "live": live, "hot": site.hot_log}
    quoted = {name: str(path).replace("'", "''") for name, path in paths.items()}
    for statement in FORBIDDEN:
        with pytest.raises(duckdb.Error):
            connection.execute(statement.format(**quoted)).fetchall()
        assert contents(site.root) == before, statement
        assert not list(out.iterdir()), statement


@pytest.mark.long
def test_memory_limit_threads_and_time_zone_of_a_connection_can_be_set_and_it_spills(
    folder: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    for setting in ("memory_limit = '50MB'", "threads = 1", "TimeZone = 'Europe/Berlin'"):
        connection.execute(f"SET {setting}")
    noon = connection.sql("SELECT CAST(min(ts) AS VARCHAR) FROM hits").fetchall()
    assert noon == [("2026-09-15 14:00:00+02",)]
    connection.execute("CREATE TEMP TABLE wide AS SELECT md5(CAST(i AS VARCHAR)) AS text FROM range(2000000) AS t (i)")
    assert connection.sql("SELECT count(DISTINCT text) FROM wide").fetchall() == [(2_000_000,)]
    assert list((folder / "run" / "spill").iterdir())


@pytest.mark.parametrize("there", [False, True])
def test_folder_without_data_is_named_and_not_changed(tmp_path: Path, there: bool) -> None:
    empty = tmp_path / "nothing"
    if there:
        empty.mkdir()
    with pytest.raises(NoData, match=f"there is no data in {empty}: name the data folder"):
        warehouse.connect(empty)
    assert [path.name for path in tmp_path.rglob("*")] == ["nothing"][: int(there)]


def test_file_of_agents_is_written_only_when_its_content_changes(site: Site) -> None:
    file = site.root / "agents.parquet"
    before = file.stat()
    write_agents(site.root, [GPTBOT])
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    file.write_bytes(b"half of it")
    write_agents(site.root, [GPTBOT, {**GPTBOT, "pattern": "OtherBot"}])
    assert pq.read_table(file)["pattern"].to_pylist() == ["GPTBot", "OtherBot"]
    assert sorted(path.name for path in site.root.glob("agents*")) == ["agents.parquet"]


def test_import_of_a_small_module_loads_neither_duckdb_nor_delta() -> None:
    loaded = "import sys, warehouse.errors; print({'duckdb', 'deltalake', 'pyarrow'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True) == "set()\n"
