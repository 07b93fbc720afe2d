"""Known survivors are no mutants of a night, and one that is no longer in the code is an error."""

from pathlib import Path

import pytest

from tests.night import mutants

SOURCE = """class Limit(Struct, frozen=True):
    seconds_max: int = 60  # é

def is_over(now_s: int) -> bool:
    return (now_s >
            Limit().seconds_max)
"""
MINUTE = ("warehouse/limit.py", "seconds_max: int = 60 # é", "seconds_max: int = 61 # é")
STALE = ("warehouse/limit.py", "seconds_max: int = 30 # é", "seconds_max: int = 31 # é")


def test_known_survivors_are_not_chosen_and_stale_ones_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "warehouse").mkdir()
    (tmp_path / MINUTE[0]).write_text(SOURCE)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    every = mutants.possible("warehouse")
    keys = [mutant.key for mutant in mutants.chosen(every, 9, 0, set())]
    before = "return (now_s > Limit().seconds_max)"
    assert sorted(keys) == [
        (MINUTE[0], before, "return ((now_s >= Limit().seconds_max))"),
        (MINUTE[0], before, "return None"),
        MINUTE,
    ]
    others = mutants.chosen(every, 9, 0, {MINUTE})
    assert {mutant.key for mutant in others} == {*keys} - {MINUTE}
    assert mutants.report([], set()) == 0
    assert mutants.report([], {STALE}) == 1
    module, old, new = STALE
    named = f"not in the code, remove from survivors.txt: {module}: {old}  ->  {new}\n"
    assert named in capsys.readouterr().out


def test_survivors_of_the_list_have_a_reason_each() -> None:
    assert len(mutants.listed()) == mutants.SURVIVORS.read_text().count("\n\n") + 1
