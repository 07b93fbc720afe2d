"""The ruleset changes with the rule data and with nothing else, and the answers change only with the ruleset."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.recall import labelled
from ingest.classification import classifier
from ingest.classification.classifier import RULESET

HERE = Path(__file__).parent


class Recorded(msgspec.Struct, frozen=True):
    """A version of the rules and the SHA-256 of its answers."""

    ruleset: str
    answers: str


def test_ruleset_is_the_same_in_another_process() -> None:
    other = subprocess.run(
        [sys.executable, "-c", "from ingest.classification.classifier import RULESET; print(RULESET)"],
        cwd=HERE.parents[2],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == RULESET
    assert len(RULESET) == 12


def ruleset_with(folder: Path, file: str, *changes: tuple[str, str]) -> str:
    """Return the RULESET of a copy of the package in which each first text is replaced by the second, everywhere."""
    copy = shutil.copytree(HERE.parents[2] / "ingest", folder / "ingest", ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / "classification" / file).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (copy / "classification" / file).write_text(text, encoding="utf-8")
    code = (
        "import sys; from ingest.classification import classifier\n"
        "assert sys.argv[1] in classifier.__file__; print(classifier.RULESET)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, folder], cwd=folder, capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("agents.toml", 'purpose = "training"', 'purpose = "search"'),
        ("agents.toml", '"GPTBot"', '"GPTRobot"'),
        ("rules.toml", "^kube-probe/", "^kube-probes/"),
        ("rules.toml", 'kind = "dalvik"', 'kind = "android"'),
        ("rules.py", '"Goodreads", ', ""),
        ("device.py", "MATCHED_CHARACTERS_MAX = 1024", "MATCHED_CHARACTERS_MAX = 512"),
        ("device.py", "roku/|", ""),
        ("rules.toml", "^text/markdown$", "^text/(?:x-)?markdown$"),
        ("rules.toml", '"YandexBot"', '"Yandex"'),
        ("ruleset.py", "ALGORITHM = 3", "ALGORITHM = 4"),
    ],
)
def test_ruleset_changes_with_a_row_of_the_rules(tmp_path: Path, file: str, old: str, new: str) -> None:
    assert ruleset_with(tmp_path, file, (old, new)) != RULESET


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        (
            "classifier.py",
            [("_find_person", "_find_shape"), ("_HABIT_SET", "_HABITS_TOGETHER"), ("return", "return ")],
        ),
        ("device.py", [("_parsed_device", "_device_family"), ('"""Browser,', '"""The browser,')]),
        ("agents.py", [("def find(", "def find(  # a comment\n    ")]),
        (
            "rules.toml",
            [("# Browsers and apps of people.", "# Browsers of people."), ('kind = "dalvik"', "kind   =   'dalvik'")],
        ),
        ("agents.toml", [("checked = 2026", "checked = 2027"), ("until = 2026", "until = 2025"), ("\n\n", "\n\n\n")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ruleset_stays_when_source_is_renamed_or_reformatted_or_an_agent_is_checked(
    tmp_path: Path, file: str, changes: list[tuple[str, str]]
) -> None:
    assert ruleset_with(tmp_path, file, *changes) == RULESET


def test_answers_change_only_together_with_the_ruleset() -> None:
    # The answers for the labelled set are recorded; they change only with a package, a row or ALGORITHM.
    recorded = msgspec.json.decode((HERE / "ruleset.json").read_bytes(), type=Recorded)
    answers = hashlib.sha256()
    for row in labelled():
        classification, device = classifier.classify_all([row.user_agent])[0]
        answers.update(msgspec.json.encode((row.user_agent, classification, device)))
    now = Recorded(RULESET, answers.hexdigest())
    hint = f"write {msgspec.json.encode(now).decode()} to tests/ingest/classification/ruleset.json"
    assert now.ruleset == recorded.ruleset, f"the rules changed: {hint}"
    assert now.answers == recorded.answers, (
        f"the rules did not change: add one to ALGORITHM in ingest/classification/ruleset.py; {hint}"
    )
