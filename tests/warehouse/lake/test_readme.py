"""README of the lake's folder."""

from pathlib import Path

from warehouse.lake.readme import README_FILE, TEXT, write_readme
from warehouse.lake.roots import LocalPath


def test_readme_is_written_once_and_again_if_it_was_changed(tmp_path: Path) -> None:
    file = tmp_path / README_FILE
    write_readme(LocalPath(tmp_path))
    first = file.stat()
    write_readme(LocalPath(tmp_path))
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    file.write_text("of an older release")
    write_readme(LocalPath(tmp_path))
    assert file.read_text() == TEXT
