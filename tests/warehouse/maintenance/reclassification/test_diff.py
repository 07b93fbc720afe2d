"""The diff counts hits whose traffic, rule or agent changes, and no others."""

from collections.abc import Iterable

import duckdb
import pytest

from tests.warehouse.maintenance.reclassification.rules import table
from tests.warehouse.site import DAY, NOON, Row, Site, view
from warehouse.maintenance.reclassification.diff import CountChange, Diff, DiffTable, RuleChange, changed
from warehouse.tables import HITS_TABLE

EMPTY = Diff(hits=0, paths=0, by_rule=(), by_traffic=(), by_agent=())


@pytest.fixture
def cursor(site: Site) -> Iterable[duckdb.DuckDBPyConnection]:
    """Yield a cursor whose table `classified` has the tests' user agents under the rules of `rules`."""
    with site.database.cursor() as cursor:
        cursor.register("rules", table(["GPTBot/1", "ClaudeBot/1", "Firefox/1", ""]))
        cursor.execute("CREATE TEMP TABLE classified AS FROM rules")
        yield cursor


def diff(site: Site, cursor: duckdb.DuckDBPyConnection, *rows: Row) -> Diff:
    """Return the diff of hits, which are stored before."""
    site.post(*rows)
    site.load()
    changes = DiffTable(cursor)
    changes.add(changed(cursor, site.state(HITS_TABLE).files))
    return changes.read()


def person(path: str = "/a", user_agent: str = "Firefox/1", **columns: object) -> Row:
    return view(path, user_agent=user_agent, ruleset="old", **columns)


def gptbot(path: str = "/a", user_agent: str = "GPTBot/1", **columns: object) -> Row:
    return person(path, user_agent, **{"traffic": "ai", "agent": "GPTBot", "rule": "ai:GPTBot", **columns})


def test_hits_that_stay_the_same_under_a_new_ruleset_are_no_change(
    site: Site, cursor: duckdb.DuckDBPyConnection
) -> None:
    assert diff(site, cursor, person(), gptbot(), person("/b", "", traffic="bot", rule="bot:empty")) == EMPTY


def test_person_that_becomes_an_agent_changes_both_counts(site: Site, cursor: duckdb.DuckDBPyConnection) -> None:
    result = diff(site, cursor, person(user_agent="GPTBot/1"), person())
    assert result == Diff(
        hits=1,
        paths=1,
        by_rule=(RuleChange("human", "human", "ai", "ai:GPTBot", hits=1, paths=1),),
        by_traffic=(CountChange("ai", None, 1), CountChange("human", None, -1)),
        by_agent=(CountChange("ai", "GPTBot", 1),),
    )


def test_change_of_the_agent_alone_leaves_the_counts_of_traffic_unchanged(
    site: Site, cursor: duckdb.DuckDBPyConnection
) -> None:
    result = diff(site, cursor, gptbot(user_agent="ClaudeBot/1"))
    assert result.by_traffic == ()
    assert result.by_agent == (CountChange("ai", "ClaudeBot", 1), CountChange("ai", "GPTBot", -1))


def test_new_name_of_the_same_rule_is_a_change_of_the_agents_and_of_no_rule(
    site: Site, cursor: duckdb.DuckDBPyConnection
) -> None:
    result = diff(site, cursor, gptbot(agent="openai.com/gptbot"), gptbot())
    assert result == Diff(
        hits=1,
        paths=1,
        by_rule=(),
        by_traffic=(),
        by_agent=(CountChange("ai", "GPTBot", 1), CountChange("ai", "openai.com/gptbot", -1)),
    )


def test_agent_that_becomes_null_and_null_that_becomes_an_agent_are_changes(
    site: Site, cursor: duckdb.DuckDBPyConnection
) -> None:
    result = diff(site, cursor, gptbot(agent=None), person(agent="x"), gptbot("/b"))
    assert (result.hits, result.by_traffic) == (2, ())
    assert result.by_agent == (CountChange("ai", "GPTBot", 1), CountChange("human", "x", -1))


def test_rules_with_most_hits_come_first_and_equal_changes_cancel_out(
    site: Site, cursor: duckdb.DuckDBPyConnection
) -> None:
    result = diff(site, cursor, person(user_agent="GPTBot/1"), gptbot(user_agent="Firefox/1"), person(user_agent=""))
    assert [(each.old_rule, each.new_rule, each.hits) for each in result.by_rule] == [
        ("ai:GPTBot", "human", 1),
        ("human", "ai:GPTBot", 1),
        ("human", "bot:empty", 1),
    ]
    assert result.by_traffic == (CountChange("bot", None, 1), CountChange("human", None, -1))
    assert result.by_agent == ()


def test_path_of_several_days_files_and_agents_is_one_path_of_its_project(
    site: Site, cursor: duckdb.DuckDBPyConnection
) -> None:
    site.post(person(user_agent="GPTBot/1"))
    site.load()
    result = diff(
        site,
        cursor,
        person(user_agent="GPTBot/1", ts=NOON + DAY),
        person(user_agent="ClaudeBot/1"),
        person(user_agent="GPTBot/1", project_id="other"),
    )
    assert (result.hits, result.paths) == (4, 2)
    assert {each.new_rule: (each.hits, each.paths) for each in result.by_rule} == {
        "ai:GPTBot": (3, 2),
        "ai:ClaudeBot": (1, 1),
    }


@pytest.mark.long
def test_files_added_one_by_one_give_the_diff_of_all(site: Site, cursor: duckdb.DuckDBPyConnection) -> None:
    for day in range(3):
        site.post(person(user_agent="GPTBot/1", ts=NOON + day * DAY))
        site.load()
    one_by_one = DiffTable(cursor)
    for file in site.state(HITS_TABLE).files:
        one_by_one.add(changed(cursor, [file]))
    result = one_by_one.read()
    together = DiffTable(cursor)
    together.add(changed(cursor, site.state(HITS_TABLE).files))
    assert result == together.read()
    assert (result.hits, result.paths) == (3, 1)
