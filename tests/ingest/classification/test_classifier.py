import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import crawleruseragents  # type: ignore[import-untyped]  # ships no types
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.recall import labelled
from ingest.classification import agents, classifier
from ingest.classification.agents import Purpose
from ingest.classification.classifier import LEFT_OUT, ONLY_AS_NAME, RULESET, Classification, Traffic
from ingest.classification.rules import RULES, PatternSet, Rule, read

HERE = Path(__file__).parent


class Expected(msgspec.Struct, frozen=True):
    ua: str
    traffic: Traffic
    agent: str | None
    rule: str
    operator: str | None = None
    purpose: Purpose | None = None
    note: str = ""


class Labelled(msgspec.Struct, frozen=True):
    ua: str
    label: Traffic


class Recorded(msgspec.Struct, frozen=True):
    """A version of the rules and the SHA-256 of its answers."""

    ruleset: str
    answers: str


EXPECTED = [msgspec.json.decode(line, type=Expected) for line in (HERE / "agents.jsonl").read_bytes().splitlines()]
SAMPLE = [msgspec.json.decode(line, type=Labelled) for line in (HERE / "ua_sample.jsonl").read_bytes().splitlines()]
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot"

KINDS = {rule.kind for table in msgspec.structs.astuple(RULES) for rule in table} | {"user-agents"}

any_text = st.text(st.characters(codec=None), max_size=3000)  # lone surrogates too


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: f"{row.rule} {row.ua[:40]}")
def test_user_agent_gets_its_traffic_agent_and_rule(row: Expected) -> None:
    expected = Classification(row.traffic, row.agent, row.operator, row.purpose, row.rule)
    assert classifier.classify(row.ua) == expected


@pytest.mark.parametrize("row", SAMPLE, ids=lambda row: row.ua[:60])
def test_every_user_agent_of_the_labelled_sample_is_right(row: Labelled) -> None:
    assert classifier.classify(row.ua).traffic == row.label


def test_every_token_of_every_agent_has_a_row() -> None:
    shown = {(row.agent, row.ua.lower()) for row in EXPECTED}
    missing = [
        token
        for agent in agents.AGENTS
        for token in agent.tokens
        if not any(name == agent.name and token.lower() in ua for name, ua in shown)
    ]
    assert missing == []


def names(traffic: Traffic, rules: Iterable[Rule]) -> set[str]:
    return {f"{traffic}:{rule.kind}:{rule.name}" if rule.name else f"{traffic}:{rule.kind}" for rule in rules}


def test_every_rule_has_a_row() -> None:
    shown = {row.rule for row in EXPECTED}
    own = names("bot", (*RULES.named_bot, *RULES.bot_habit, *RULES.unshaped))
    people = names("human", (*RULES.known_person, *RULES.person))
    assert own | people | {"bot:user-agents", "bot:crawler-user-agents:Googlebot"} <= shown


def test_every_example_of_crawler_user_agents_is_automatic() -> None:
    rows = [row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] not in LEFT_OUT]
    assert [ua for row in rows for ua in row["instances"] if classifier.classify(ua).traffic == "human"] == []


@pytest.mark.parametrize("name", sorted(ONLY_AS_NAME))
def test_browser_of_an_app_that_is_also_a_bot_is_a_person(name: str) -> None:
    phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    app = name.replace("\\", "").rstrip(";/")
    assert classifier.classify(f"{phone}Mobile/15E148 {app}/8.4 {app};").traffic == "human"


@given(any_text)
def test_any_text_is_classified_and_the_same_way_again(text: str) -> None:
    first = classifier.classify(text)
    assert classifier.classify(text) == first
    assert (first.traffic == "ai") == (first.operator is not None) == (first.purpose is not None)
    assert first.rule.startswith(f"{first.traffic}:")
    assert first.agent is None or first.rule.endswith(f":{first.agent}")


@given(st.from_regex(r"[A-Za-z]{3,12}", fullmatch=True), st.sampled_from(["{}bot/1.0", "{}/1.0", "x-{}-Crawler", "{}"]))
def test_no_rule_or_agent_has_a_name_from_the_user_agents_text(name: str, form: str) -> None:
    found = classifier.classify(form.format(name))
    agents_named = {row.name for row in RULES.named_bot} | {agent.name for agent in agents.AGENTS}
    is_crawler = found.rule.startswith("bot:crawler-user-agents:")
    assert is_crawler or found.agent is None or found.agent in agents_named
    assert is_crawler or found.agent or found.rule.split(":", 1)[1] in KINDS


@given(st.sampled_from([row.ua for row in EXPECTED if row.ua.strip()]), any_text)
def test_text_beyond_1024_characters_changes_nothing(user_agent: str, tail: str) -> None:
    padded = user_agent.ljust(1024)
    assert classifier.classify(padded + tail) == classifier.classify(padded)


def test_agent_named_after_1024_characters_is_not_seen() -> None:
    assert classifier.classify("x" * (1024 - 7) + " GPTBot").agent == "GPTBot"
    assert classifier.classify("x" * (1024 - 6) + " GPTBot").agent is None


def test_agent_is_found_wherever_its_token_stands() -> None:
    for text in (GPTBOT, GPTBOT[60:], GPTBOT[:80], GPTBOT.upper(), f"\ud800{GPTBOT}", f"{'é' * 500}{GPTBOT}"):
        assert classifier.classify(text).agent == "GPTBot"


@given(any_text)
def test_a_text_has_at_most_as_many_words_as_characters(text: str) -> None:
    assert len(agents.words(text)) <= len(text.lower())


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
    asked = subprocess.run([sys.executable, "-c", code, folder], cwd=folder, capture_output=True, text=True, check=True)
    return asked.stdout.strip()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("agents.toml", 'purpose = "training"', 'purpose = "search"'),
        ("agents.toml", '"GPTBot"', '"GPTRobot"'),
        ("rules.toml", "^kube-probe/", "^kube-probes/"),
        ("rules.toml", 'kind = "dalvik"', 'kind = "android"'),
        ("classifier.py", '"Goodreads", ', ""),
        ("device.py", "MATCHED_CHARACTERS_MAX = 1024", "MATCHED_CHARACTERS_MAX = 512"),
        ("device.py", "roku/|", ""),
        ("ruleset.py", "ALGORITHM = 2", "ALGORITHM = 3"),
    ],
)
def test_ruleset_changes_with_a_row_of_the_rules(tmp_path: Path, file: str, old: str, new: str) -> None:
    assert ruleset_with(tmp_path, file, (old, new)) != RULESET


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        (
            "classifier.py",
            [("_by_shape", "_answer_of_the_shape"), ("_HABIT_SET", "_HABITS_TOGETHER"), ("return", "return ")],
        ),
        ("device.py", [("_parsed_device", "_device_family"), ('"""The browser,', '"""Browser,')]),
        ("agents.py", [("def find(", "def find(  # the first one\n    ")]),
        ("rules.toml", [("# People.", "# Persons."), ('kind = "dalvik"', "kind   =   'dalvik'")]),
        ("agents.toml", [("checked = 2026", "checked = 2027"), ("\n\n", "\n\n\n")]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ruleset_stays_when_source_is_renamed_reformatted_or_checked_again(
    tmp_path: Path, file: str, changes: list[tuple[str, str]]
) -> None:
    assert ruleset_with(tmp_path, file, *changes) == RULESET


def test_answers_change_only_together_with_the_ruleset() -> None:
    """The recorded answers are those of the labelled set; a package, a row or ALGORITHM must change with them."""
    recorded = msgspec.json.decode((HERE / "ruleset.json").read_bytes(), type=Recorded)
    answers = hashlib.sha256()
    for row in labelled():
        found, device = classifier.read_all([row.user_agent])[0]
        answers.update(msgspec.json.encode((row.user_agent, found, device)))
    now = Recorded(RULESET, answers.hexdigest())
    hint = f"write {msgspec.json.encode(now).decode()} to tests/ingest/classification/ruleset.json"
    assert now.ruleset == recorded.ruleset, f"the rules changed: {hint}"
    assert now.answers == recorded.answers, (
        f"the rules did not change: add one to ALGORITHM in ingest/classification/ruleset.py; {hint}"
    )


AGENT_ROW = """
[[agent]]
tokens = ["OneBot"]
name = "One"
operator = "Example"
purpose = "search"
source = "https://example.com"
checked = 2026-11-20
"""


def test_row_of_the_table_is_read() -> None:
    (agent,) = agents.read(AGENT_ROW)
    assert (agent.name, agent.tokens, agent.checked.isoformat()) == ("One", ("OneBot",), "2026-11-20")


def test_token_given_twice_is_refused_in_any_case() -> None:
    with pytest.raises(ValueError, match="the token 'onebot' twice"):
        agents.read(AGENT_ROW + AGENT_ROW.replace('"One"', '"Two"').replace("OneBot", "onebot"))


def test_name_given_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="the name 'one' twice"):
        agents.read(AGENT_ROW + AGENT_ROW.replace("OneBot", "TwoBot"))


@pytest.mark.parametrize("change", [('"search"', '"spying"'), ("source", "sauce"), ("2026-11-20", '"soon"')])
def test_faulty_row_is_refused(change: tuple[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        agents.read(AGENT_ROW.replace(*change))


def test_update_that_drops_a_narrowed_crawler_pattern_is_refused() -> None:
    rows = [row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] != "WhatsApp"]
    with pytest.raises(LookupError, match="no longer has WhatsApp"):
        classifier.crawlers(rows)


RULE_ROWS = """
named_bot = []
known_person = []
bot_habit = []
person = [{ kind = "browser", pattern = "^Mozilla/" }]
unshaped = [{ kind = "not-a-browser", pattern = "" }]
"""


def test_tables_of_rules_are_read() -> None:
    assert read(RULE_ROWS).person == (Rule("browser", "^Mozilla/"),)


def test_tables_that_leave_a_user_agent_without_a_rule_are_refused() -> None:
    with pytest.raises(ValueError, match="must match every text"):
        read(RULE_ROWS.replace('pattern = ""', 'pattern = "x"'))


@pytest.mark.parametrize("change", [("pattern", "regex"), ("unshaped", "unshapely"), ('"browser"', "1")])
def test_faulty_row_of_the_rules_is_refused(change: tuple[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(RULE_ROWS.replace(*change))


def test_pattern_that_is_not_of_linear_time_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not a pattern of RE2: \(a\)\\1"):
        PatternSet([r"(a)\1"])
