"""Tables of rules are checked when they are read."""

import re

import crawleruseragents  # type: ignore[import-untyped]  # ships no types
import msgspec
import pytest

from ingest.classification.rules import Rule, parse, read_crawlers


@pytest.mark.parametrize("pattern", ["WhatsApp", "Fluid", r"yandex\.com\/bots"])
def test_update_that_drops_a_crawler_pattern_with_a_rule_of_its_own_is_refused(pattern: str) -> None:
    rows = [row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] != pattern]
    with pytest.raises(LookupError, match=re.escape(f"no longer has {pattern}")):
        read_crawlers(rows)


RULE_ROWS = """
named_bot = []
known_person = []
bot_habit = []
person = [{ kind = "browser", pattern = "^Mozilla/" }]
unshaped = [{ kind = "not-a-browser", pattern = "" }]
accept = [{ kind = "accept-markdown", pattern = "^text/markdown$" }]
crawler_names = { 'Ahrefs(Bot|SiteAudit)' = "Ahrefs" }
"""


def test_rows_of_a_table_become_rules() -> None:
    rules = parse(RULE_ROWS)
    assert rules.person == (Rule("browser", "^Mozilla/"),)
    assert rules.accept == (Rule("accept-markdown", "^text/markdown$"),)
    assert rules.crawler_names == {"Ahrefs(Bot|SiteAudit)": "Ahrefs"}


def test_tables_that_leave_a_user_agent_without_a_rule_are_refused() -> None:
    with pytest.raises(ValueError, match="must match every text"):
        parse(RULE_ROWS.replace('pattern = ""', 'pattern = "x"'))


@pytest.mark.parametrize("change", [("pattern", "regex"), ("unshaped", "unshapely"), ('"browser"', "1")])
def test_faulty_row_of_the_rules_is_refused(change: tuple[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse(RULE_ROWS.replace(*change))
