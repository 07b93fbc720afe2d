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


Change = tuple[str, tuple[tuple[str, str], ...]]
"""A file of the package, and texts with their replacements."""
PRINT_RULESETS = """
import os, sys
import crawleruseragents, msgspec, re2, ua_parser

for folder in sys.argv[1:]:
    if os.fork() == 0:
        sys.path.insert(0, folder)
        from ingest.classification import classifier
        assert folder in classifier.__file__
        print(classifier.RULESET, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
"""Program that prints the ruleset of each copy of the package, each in a process of its own."""
OTHER_RULES: list[Change] = [
    ("agents.toml", (('purpose = "training"', 'purpose = "search"'),)),
    ("agents.toml", (('"GPTBot"', '"GPTRobot"'),)),
    ("rules.toml", (("^kube-probe/", "^kube-probes/"),)),
    ("rules.toml", (('kind = "dalvik"', 'kind = "android"'),)),
    ("rules.py", (('"Goodreads", ', ""),)),
    ("device.py", (("MATCHED_CHARACTERS_MAX = 1024", "MATCHED_CHARACTERS_MAX = 512"),)),
    ("device.py", (("roku/|", ""),)),
    ("device.py", (("scraper|", ""),)),
    ("rules.toml", (("^text/markdown$", "^text/(?:x-)?markdown$"),)),
    ("rules.toml", (('"YandexBot"', '"Yandex"'),)),
    ("ruleset.py", (("ALGORITHM = 3", "ALGORITHM = 4"),)),
]
SAME_RULES: list[Change] = [
    ("classifier.py", (("_find_person", "_find_shape"), ("_HABIT_SET", "_HABITS_TOGETHER"), ("return", "return "))),
    ("device.py", (("_parsed_device", "_device_family"), ('"""Browser,', '"""The browser,'))),
    ("agents.py", (("def find(", "def find(  # a comment\n    "),)),
    (
        "rules.toml",
        (("# Browsers and apps of people.", "# Browsers of people."), ('kind = "dalvik"', "kind   =   'dalvik'")),
    ),
    ("agents.toml", (("checked = 2026", "checked = 2027"), ("until = 2026", "until = 2025"), ("\n\n", "\n\n\n"))),
]


@pytest.mark.long
def test_ruleset_changes_with_a_row_and_not_with_a_name_or_form_or_the_day_of_a_check(tmp_path: Path) -> None:
    folders = []
    for number, changes in enumerate([*([each] for each in OTHER_RULES), SAME_RULES]):
        folders.append(tmp_path / str(number))
        ignored = shutil.ignore_patterns("__pycache__")
        copy = shutil.copytree(HERE.parents[2] / "ingest", folders[-1] / "ingest", ignore=ignored)
        for file, texts in changes:
            content = (copy / "classification" / file).read_text(encoding="utf-8")
            for old, new in texts:
                assert old in content
                content = content.replace(old, new)
            (copy / "classification" / file).write_text(content, encoding="utf-8")
    command = [sys.executable, "-c", PRINT_RULESETS, *folders]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    *others, same = done.stdout.split()
    assert [change for change, ruleset in zip(OTHER_RULES, others, strict=True) if ruleset == RULESET] == []
    assert same == RULESET


@pytest.mark.long
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
