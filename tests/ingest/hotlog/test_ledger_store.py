"""Keys of the ledger's digests, its upgrade from unkeyed digests, and the deletion of old logs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from api import data_folder, settings
from ingest.hotlog import ledger_store
from ingest.hotlog.ledger_store import Ledger, keyed_columns
from ingest.imports import files, ledger
from ingest.imports.chunk import Summary
from ingest.imports.fingerprint import EARLIER_DIGEST_BYTES, fingerprint
from ingest.imports.importer import Options, import_logs
from tests.ingest.hotlog.guessing import ADDRESSES, guess_log, stored
from tests.processes.running import PROJECT, new_key, readership
from tests.warehouse.site import DAY, NOON, SECRET, Site
from warehouse.database.transaction import transaction
from warehouse.errors import StoreTooNew
from warehouse.hotlog import batches, postgresql, schema_migrations
from warehouse.hotlog.connection import HotConnection, HotLogPlace, Server

FIRST, SECOND = ADDRESSES[171], ADDRESSES[23]
LINES = [
    f'{{}} - - [15/Sep/2026:12:00:0{number} +0000] "GET /{number} HTTP/1.1" 200 5 "-" "GPTBot/1.3"\n'
    for number in range(4)
]
CONTENT = "".join(
    line.format(address) for line, address in zip(LINES, (FIRST, SECOND, FIRST, SECOND), strict=True)
).encode()
UNKEYED = (
    "DROP INDEX batches_id_rows_bytes",
    "ALTER TABLE batches DROP COLUMN bytes",
    "DROP TABLE IF EXISTS read_logs",
    """CREATE TABLE read_logs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, project_id TEXT NOT NULL, parent INTEGER NOT NULL, first BLOB NOT NULL,
        bytes INTEGER NOT NULL, digest BLOB NOT NULL, marks BLOB NOT NULL, is_cut INTEGER NOT NULL
    )""",
    "CREATE INDEX read_logs_after ON read_logs (project_id, parent, first)",
)
"""Statements that replace the ledger by an empty one of an older release."""
ADD_UNKEYED = "INSERT INTO read_logs (project_id, parent, first, bytes, digest, marks, is_cut) VALUES (?,?,?,?,?,?,?)"

LONG_LINE = f'{{}} - - [15/Sep/2026:12:00:00 +0000] "GET /{{}} HTTP/1.1" 200 5 "-" "GPTBot/1.3 {"-" * 70}"\n'


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(Site(tmp_path / "site")) as site:
        yield site


def run_import(site: Site, log: Path, secret: bytes = SECRET, now: datetime = NOON) -> Summary:
    return import_logs(site.hot, site.root, "site", [str(log)], secret, now.timestamp, Options("combined"))


def new_log(folder: Path, lines: int = len(LINES)) -> Path:
    log = folder / "access.log"
    log.write_bytes(b"".join(CONTENT.splitlines(keepends=True)[:lines]))
    return log


def unkey(hot: HotConnection, *projects: str) -> None:
    """Give a hot log the ledger of an older release, in which CONTENT was imported into projects."""
    chunk = fingerprint(CONTENT, EARLIER_DIGEST_BYTES)
    row = (0, chunk.first_line, chunk.bytes, chunk.digest, chunk.checkpoints, 0)
    is_file = isinstance(hot, sqlite3.Connection)
    statements = (
        *UNKEYED,
        "ALTER TABLE batches DROP COLUMN kind",
        "PRAGMA user_version=7" if is_file else "UPDATE schema_version SET version = 1",
    )
    for statement in statements:
        types = statement.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGSERIAL PRIMARY KEY").replace("BLOB", "BYTEA")
        hot.execute(statement if is_file else types)
    for project in projects:
        hot.execute(ADD_UNKEYED if is_file else ADD_UNKEYED.replace("?", "%s"), (project, *row))


def digests(text: str) -> tuple[bytes, ...]:
    """Return what the ledger stores of a log of one chunk."""
    chunk = fingerprint(text.encode())
    columns = keyed_columns(chunk.first_line, chunk.digest, chunk.checkpoints, SECRET)
    return columns["first"], columns["digest"], columns["marks"]


def unkey_file(data: Path, *projects: str) -> None:
    with closing(batches.connect(data / "hot.sqlite")) as hot:
        unkey(hot, *projects)


def test_no_address_is_found_with_the_whole_folder(tmp_path: Path) -> None:
    """Try all addresses of a network with the secret of the store, as nobody can without the control database."""
    data, log = tmp_path / "data", new_log(tmp_path)
    new_key(data)
    command = ("--data", str(data), "import", PROJECT, str(log))
    assert readership(*command).returncode == 0
    secret = data_folder.secret(settings.read({}, data))
    assert guess_log(stored(data), LINES, secret) == set()
    unkey_file(data, PROJECT)
    assert '"known":4' in readership(*command).stdout
    assert guess_log(stored(data), LINES, secret) == {FIRST, SECOND}, "the attack works on digests of earlier releases"


@pytest.mark.long
def test_attack_with_the_secret_leaves_one_of_4096_addresses_however_many_lines_a_reader_has(
    site: Site, tmp_path: Path
) -> None:
    """Try 28,080 addresses of one length against all digests of a log of 2, 9 and 1,200 lines (192 KiB)."""
    address = "101.102.171.23"
    addresses = [f"101.102.{number // 256}.{number % 256}" for number in range(1 << 16)]
    possible = {each for each in addresses if len(each) == len(address)}
    counts = []
    for lines in (2, 9, 1_200):
        text = "".join(LONG_LINE.format("{0}", f"{lines}-{number}") for number in range(lines))
        log = tmp_path / f"{lines}.log"
        log.write_text(text.format(address))
        run_import(site, log)
        query = "SELECT first, digest, marks FROM read_logs ORDER BY id DESC LIMIT 1"
        [stored] = site.hot.execute(query).fetchall()
        possible = {each for each in possible if digests(text.format(each)) == stored}
        counts.append(len(possible))
    assert address in possible
    assert 2 <= counts[0] < 3 * 28_080 / 4096
    assert counts == counts[:1] * 3


@pytest.mark.long
def test_no_address_is_found_without_the_secret_and_none_of_an_older_ledger_after_its_upgrade(tmp_path: Path) -> None:
    """Try all addresses of a network with all files but the control database, which has the secret."""
    data, log = tmp_path / "data", new_log(tmp_path)
    new_key(data)
    command = ("--data", str(data), "import", PROJECT, str(log))
    assert readership(*command).returncode == 0
    assert guess_log(stored(data, "control"), LINES) == set()
    unkey_file(data, PROJECT)
    assert guess_log(stored(data, "control"), LINES) == {FIRST, SECOND}, "the attack works"
    again = readership(*command)
    assert '"known":4' in again.stdout, again.stderr
    assert guess_log(stored(data, "control"), LINES) == set()


@pytest.mark.long
def test_older_ledger_is_keyed_by_the_first_command_and_leaves_the_wal(tmp_path: Path) -> None:
    """Keep a connection open, because SQLite would delete the WAL with the last one."""
    data = tmp_path / "data"
    new_key(data)
    with closing(batches.connect(data / "hot.sqlite")):
        unkey_file(data, *[PROJECT] * 2_000)
        assert guess_log(stored(data, "control"), LINES) == {FIRST, SECOND}
        assert readership("--data", str(data), "project", "create", "another").returncode == 0
        assert guess_log(stored(data, "control"), LINES) == set()


def test_keyed_ledger_of_an_older_release_recognises_its_logs_and_goes_on(hot_log: HotLogPlace, tmp_path: Path) -> None:
    log = new_log(tmp_path)
    with closing(batches.connect(hot_log)) as hot:
        ledger_store.create(hot)
        unkey(hot, "other", "site")
    with closing(batches.connect(hot_log)) as hot, files.open_source(str(log)) as source:
        for _ in range(2):
            ledger_store.prepare(hot, SECRET, NOON.timestamp)
        site = Ledger(hot, "site", SECRET)
        position, lines = ledger.find(site, source)
        assert (position.id, lines) == (2, len(LINES))
        with transaction(hot):
            assert ledger.record(site, position, fingerprint(b"more"), ends_mid_line=False, now_s=0).id == 3
        assert ledger_store.foreign_until_s(site) == 0
        for until, rows in ((NOON, [1, 2]), (NOON + DAY, [])):
            ledger_store.delete_before(hot, until.date())
            assert hot.execute("SELECT id FROM read_logs ORDER BY id").fetchall() == [(id,) for id in rows]


def test_older_release_is_refused_after_the_upgrade(hot_log: HotLogPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an older release open the upgraded hot log: it would store unkeyed digests."""
    with closing(batches.connect(hot_log)) as hot:
        unkey(hot)
    with closing(batches.open_only(hot_log)) as hot:
        assert not schema_migrations.has_table(hot, schema_migrations.UNKEYED_LOGS), "upgraded by a reader"
    batches.connect(hot_log).close()
    older = schema_migrations.MIGRATIONS[:6]
    monkeypatch.setattr(postgresql, "VERSION", 1)
    with pytest.raises(StoreTooNew):
        batches.connect(hot_log) if isinstance(hot_log, Server) else batches.connect_file(hot_log, known=older)


@pytest.mark.long
def test_old_logs_are_deleted_whole_and_a_log_that_has_grown_since_is_kept(site: Site, tmp_path: Path) -> None:
    """Read a log again after ten days, when it has grown, and another one only once."""
    log, other = new_log(tmp_path, 2), tmp_path / "other"
    other.write_bytes(CONTENT[1:])
    run_import(site, log)
    run_import(site, other)
    new_log(tmp_path)
    run_import(site, log, now=NOON + 10 * DAY)
    ledger_store.delete_before(site.hot, (NOON + 9 * DAY).date())
    assert run_import(site, log, now=NOON + 10 * DAY).known == len(LINES)
    assert run_import(site, other, now=NOON + 10 * DAY).known == 0
    ledger_store.delete_before(site.hot, (NOON + 11 * DAY).date())
    assert site.hot.execute("SELECT count(*) FROM read_logs").fetchone() == (0,)


def test_work_to_delete_old_logs_grows_with_the_number_of_their_chunks(site: Site) -> None:
    ledger_store.create(site.hot)
    assert isinstance(site.hot, sqlite3.Connection)
    steps = []
    for chunks in (500, 1_000):
        rows = [(id, 0 if id % 50 == 1 else id - 1) for id in range(1, chunks + 1)]
        site.hot.executemany("INSERT INTO read_logs VALUES (?, 'site', ?, x'00', 9, x'00', x'', 0, 9, x'')", rows)
        steps.append(0)

        def count() -> None:
            steps[-1] += 1

        site.hot.set_progress_handler(count, 100)
        ledger_store.delete_before(site.hot, NOON.date())
        site.hot.set_progress_handler(None, 0)
        assert site.hot.execute("SELECT count(*) FROM read_logs").fetchone() == (0,)
    assert steps[1] < 3 * steps[0]


def test_log_read_with_a_lost_secret_is_known_to_have_been_read_until_then(site: Site, tmp_path: Path) -> None:
    log = new_log(tmp_path)
    run_import(site, log)
    lost, other = (Ledger(site.hot, project, b"another secret") for project in ("site", "other"))
    assert ledger_store.foreign_until_s(lost) == NOON.timestamp() + 1
    assert ledger_store.foreign_until_s(other) == ledger_store.foreign_until_s(Ledger(site.hot, "site", SECRET)) == 0
