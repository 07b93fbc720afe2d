"""A process that does not use the lake of this one is found, with the reason."""

from dataclasses import replace
from pathlib import Path

from warehouse.batch import reach


def test_answer_is_found_in_the_lake_and_deleted(tmp_path: Path) -> None:
    with reach.probe(tmp_path) as probe:
        assert reach.answer(probe, "process") == ""
        assert reach.fault(probe, "process") == ""
    assert not list(tmp_path.iterdir())


def test_answer_in_another_lake_is_a_fault(tmp_path: Path) -> None:
    with reach.probe(tmp_path) as probe:
        assert "copy of the lake" in reach.fault(probe, "process")
        assert "another lake" in reach.answer(replace(probe, root=tmp_path / "other"), "process")


def test_lake_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    with reach.probe(tmp_path) as probe:
        (tmp_path / reach.FOLDER / f"{probe.name}.process.new").mkdir()  # also root cannot write a folder
        try:
            assert "cannot use the lake" in reach.answer(probe, "process")
        finally:
            (tmp_path / reach.FOLDER / f"{probe.name}.process.new").rmdir()


def test_other_release_is_a_fault(tmp_path: Path) -> None:
    with reach.probe(tmp_path) as probe:
        assert "not 9.9: install the same release" in reach.answer(replace(probe, release="9.9"), "process")
