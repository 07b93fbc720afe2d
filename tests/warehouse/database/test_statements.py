"""The statements for SQLite in files are those of SQLAlchemy, and run without it."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.database.statements import parse, sqlite_text

MODULES = ("warehouse.hotlog.tables", "ingest.hotlog.tables", "ingest.hotlog.ledger_tables")


@pytest.mark.parametrize("module", MODULES)
def test_file_of_statements_is_that_of_its_module(module: str) -> None:
    file = importlib.import_module(module).__file__
    assert file is not None
    advice = f"run: python -m warehouse.database.statements {module}"
    assert Path(file).with_suffix(".sqlite.sql").read_text(encoding="utf-8") == sqlite_text(module), advice


def test_statement_has_its_name_its_parameters_and_its_text() -> None:
    assert parse("-- ONE()\nSELECT 1\n\n-- TWO(a b)\nSELECT ?,\n ?\n") == [
        ("ONE", "", "SELECT 1"),
        ("TWO", "a b", "SELECT ?,\n ?"),
    ]


def test_hot_log_in_a_file_is_used_without_sqlalchemy(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from ingest.hotlog import deduplication
from ingest.hotlog import ledger_store
from warehouse.hotlog import batches
hot = batches.connect(Path({str(tmp_path / "hot.sqlite")!r}))
deduplication.create(hot)
ledger_store.create(hot)
assert batches.backlog(hot).rows == 0
print([name for name in ("sqlalchemy", "psycopg") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
