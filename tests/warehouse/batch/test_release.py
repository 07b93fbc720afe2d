"""The hash of the source changes with each file that workers may run or read, and with nothing else."""

import shutil
from pathlib import Path

import pytest

from warehouse.batch.reach import source_hash


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "room" / "rules.toml").write_text("[rule]")
    return package


def test_hash_is_that_of_the_names_and_contents(package: Path) -> None:
    first = source_hash([package])
    assert source_hash([shutil.copytree(package, package.parent / "elsewhere" / "package")]) == first
    (package / "room" / "rules.toml").write_text("[rules]")
    changed = source_hash([package])
    (package / "room" / "rules.toml").rename(package / "room" / "other.toml")
    renamed = source_hash([package])
    (package / "room" / "empty.py").write_text("")
    assert len({first, changed, renamed, source_hash([package])}) == 4


def test_bytecode_and_hidden_files_do_not_change_the_hash(package: Path) -> None:
    first = source_hash([package])
    (package / "room" / "__pycache__").mkdir()
    (package / "room" / "__pycache__" / "rules.cpython-311.pyc").write_bytes(b"code")
    (package / "room" / ".rules.toml.swp").write_bytes(b"draft")
    assert source_hash([package]) == first
