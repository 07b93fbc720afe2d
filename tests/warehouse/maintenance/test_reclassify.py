"""Every stored hit gets what today's rules say of its user agent, both tables agree, and nothing else changes."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse.rules import RULES, TODAY, says, table
from tests.warehouse.site import DAY, NOON, ROOT, Row, Site, die_at, key, view
from warehouse.errors import LakeBusy
from warehouse.hotlog import batches, dirty_days
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.maintenance import catch_up, reclassify
from warehouse.maintenance.reclassify import Reclassified, Rules
from warehouse.maintenance.reclassify_diff import CountChange, RuleChange
from warehouse.schema import HOT

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC)
FIRST, LAST = NOON - 100 * DAY, NOON + 100 * DAY


@pytest.fixture
def site(tmp_path: Path) -> Iterable[Site]:
    made = Site(tmp_path / "data")
    yield made
    made.close()


def run(site: Site, rules: Rules = RULES, on_step: catch_up.OnStep = lambda step: None) -> Reclassified:
    return reclassify.reclassify(site.hot, site.root, site.database, rules, 0, on_step=on_step)


def preview(site: Site, rules: Rules = RULES) -> Reclassified:
    return reclassify.preview(site.hot, site.root, site.database, rules, 0)


def under(rows: Iterable[Row]) -> list[Row]:
    """The rows as they should stand afterwards."""
    return [{**row, **says(row["user_agent"])} for row in rows]


def whole(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in HOT.names)


def assert_holds(site: Site, rows: list[Row]) -> None:
    """Both tables hold exactly these rows, in all columns, and the doctor finds nothing wrong."""
    stored = site.stored(delta_table.HITS_TABLE)
    assert Counter(map(whole, stored)) == Counter(map(whole, rows))
    assert all(row["date"] == row["ts"].date() for row in stored)
    assert site.daily_views() == Counter(map(key, rows))
    assert site.faults() == []


def old(path: str, user_agent: str, **columns: Any) -> Row:
    return view(path, user_agent=user_agent, ruleset="old", **columns)


OLD = [
    old("/a", "GPTBot/1"),
    old("/a", "GPTBot/1"),
    old("/b", "GPTBot/1", ts=NOON + DAY),
    old("/b", "GPTBot/1", project_id="other"),
    old("/b", "Firefox/1", ts=NOON + 40 * DAY),
    old("/c", "Firefox/1", traffic="ai", agent="GPTBot", rule="ai:GPTBot"),
    old("/c", "ClaudeBot/1", traffic="ai", agent="GPTBot", rule="ai:GPTBot"),
    old("/c", "", traffic="bot", rule="bot:x", agent="x"),
]
"""Five days of which one holds nothing but a hit that stays what it is: a person's, of Firefox."""


def store(site: Site, rows: Iterable[Row]) -> None:
    """A file each."""
    for row in rows:
        site.post(row)
        site.load()


@pytest.mark.parametrize("call", [preview, run])
def test_what_moves_is_told_by_rule_by_traffic_and_by_agent(site: Site, call: Any) -> None:
    site.post(*OLD)
    told = call(site)
    assert (told.days, told.hits, told.user_agents) == (3, 8, 4)
    assert (told.moves.hits, told.moves.paths) == (7, 4)
    assert told.moves.by_rule == (
        RuleChange("human", "human", "ai", "ai:GPTBot", hits=4, paths=3),
        RuleChange("ai", "ai:GPTBot", "ai", "ai:ClaudeBot", hits=1, paths=1),
        RuleChange("ai", "ai:GPTBot", "human", "human", hits=1, paths=1),
        RuleChange("bot", "bot:x", "bot", "bot:empty", hits=1, paths=1),
    )
    assert told.moves.by_traffic == (CountChange("ai", None, 3), CountChange("human", None, -3))
    assert told.moves.by_agent == (
        CountChange("ai", "GPTBot", 2),
        CountChange("ai", "ClaudeBot", 1),
        CountChange("bot", "x", -1),
    )


def test_every_hit_has_what_todays_rules_say_afterwards(site: Site) -> None:
    store(site, OLD)
    site.post(*OLD)
    run(site)
    assert_holds(site, under(2 * OLD))


def test_preview_changes_nothing_but_loads_what_waits(site: Site) -> None:
    site.post(*OLD)
    told = preview(site)
    versions = [site.state(spec).version for spec in delta_table.TABLES]
    assert preview(site) == told
    assert [site.state(spec).version for spec in delta_table.TABLES] == versions == [1, 1]
    assert_holds(site, OLD)


def test_the_same_rules_are_no_commit_and_ask_about_nothing(site: Site) -> None:
    store(site, OLD)
    run(site)
    versions = [site.state(spec).version for spec in delta_table.TABLES]

    def refuse(user_agents: list[str]) -> pa.Table:
        raise AssertionError(user_agents)

    told = run(site, Rules(TODAY, refuse))
    assert (told.days, told.hits, told.user_agents, told.moves.hits) == (0, 0, 0, 0)
    assert [site.state(spec).version for spec in delta_table.TABLES] == versions


def test_nothing_stored_is_nothing_to_do(site: Site) -> None:
    assert run(site) == preview(site)
    assert [site.state(spec).version for spec in delta_table.TABLES] == [0, 0]


def test_only_days_with_a_row_of_another_ruleset_are_rewritten(site: Site) -> None:
    new = under([old("/a", "GPTBot/1"), old("/a", "GPTBot/1", ts=NOON + 2 * DAY)])
    mixed = [old("/a", "GPTBot/1", ts=NOON + 2 * DAY, event_id="e")]
    store(site, [*new, *mixed])
    before = {file.path for file in site.state(delta_table.HITS_TABLE).files if file.partition == "2026-09-15"}
    assert run(site).days == 1
    assert before < {file.path for file in site.state(delta_table.HITS_TABLE).files}
    assert_holds(site, [*new, *under(mixed)])


def test_day_of_several_files_becomes_one_in_the_order_of_the_table(site: Site) -> None:
    rows = [old(f"/{number}", "GPTBot/1", ts=NOON - timedelta(seconds=number)) for number in range(8)]
    store(site, rows)
    run(site)
    (file,) = site.state(delta_table.HITS_TABLE).files
    stored = site.stored(delta_table.HITS_TABLE)
    assert file.rows == 8
    assert stored == sorted(stored, key=lambda row: tuple(row[name] for name in delta_table.HITS_ORDER))
    assert_holds(site, under(rows))


def test_days_and_months_are_cut_where_they_end(site: Site) -> None:
    just = timedelta(microseconds=1)
    instants = [MIDNIGHT, MIDNIGHT - just, MIDNIGHT - DAY, MIDNIGHT - DAY - just, datetime(1970, 1, 1, tzinfo=UTC)]
    rows = [old("/a", "GPTBot/1", ts=ts) for ts in instants]
    site.post(*rows)
    assert run(site).days == 4
    assert_holds(site, under(rows))


ODD = [
    "",
    " ",
    "GPTBot/1 \N{PILE OF POO}",
    "it's \"quoted\" ''; DROP TABLE classified; --",
    "GPTBot/" + 10_000 * "x",
    10_000 * "\N{PILE OF POO}",
    "a\x00b\n\t",
    "GPTBot",
    "gptbot",
    "NULL",
    "$ruleset {files} %s ?",
]


def test_odd_user_agents_and_columns_without_a_value_come_back_as_they_were(site: Site) -> None:
    whole = {
        "referrer": "https://example.com/?a='b'",
        "referrer_host": "example.com",
        "utm_source": "news",
        "format": "markdown",
        "status": 304,
        "event_id": "event",
    }
    rows = [old("/caf%C3%A9'", odd, agent=None) for odd in ODD] + [old("/", "Firefox/1", browser="b", **whole)]
    site.post(*rows)
    assert run(site).user_agents == len(ODD) + 1
    assert_holds(site, under(rows))


def test_each_user_agent_is_asked_about_once_however_many_days_it_came(site: Site) -> None:
    rows = [old("/a", f"GPTBot/{number % 5}", ts=NOON + number % 7 * DAY) for number in range(70)]
    asked: Counter[str] = Counter()

    def ask(user_agents: list[str]) -> pa.Table:
        asked.update(user_agents)
        return table(user_agents)

    site.post(*rows)
    assert run(site, Rules(TODAY, ask)).days == 7
    assert asked == {f"GPTBot/{number}": 1 for number in range(5)}
    assert_holds(site, under(rows))


def test_more_user_agents_than_are_remembered_are_asked_about_again(site: Site) -> None:
    many = reclassify.CACHED_MAX + 1
    made = pa.Table.from_pylist([old("/a", "")], HOT).take(pa.array([0] * many))
    agents = pa.array([f"GPTBot/{number}" for number in range(many)])
    batches.append(site.hot, made.set_column(9, HOT.field("user_agent"), agents).combine_chunks().to_batches()[0], 0)
    site.post(*(old("/a", "GPTBot/7", ts=NOON + day * DAY) for day in (1, 2)))

    def ask(user_agents: list[str]) -> pa.Table:
        assert len(user_agents) <= reclassify.CLASSIFY_BATCH
        said = table(["GPTBot/1"]).take(pa.array([0] * len(user_agents)))
        return said.set_column(said.column_names.index("user_agent"), "user_agent", pa.array(user_agents))

    told = run(site, Rules(TODAY, ask))
    assert (told.days, told.hits, told.user_agents) == (3, many + 2, many + 1)
    assert site.daily_views().total() == many + 2
    assert {each[3:] for each in site.daily_views()} == {("ai", "GPTBot")}


rows_of_any_rules = st.builds(
    view,
    path=st.sampled_from(["/", "/a"]),
    ts=st.sampled_from([NOON, MIDNIGHT, MIDNIGHT - timedelta(microseconds=1)]),
    project_id=st.sampled_from(["site", "other"]),
    traffic=st.sampled_from(["human", "ai", "bot"]),
    agent=st.sampled_from([None, "GPTBot", "x"]),
    rule=st.sampled_from(["human", "ai:GPTBot", "r"]),
    ruleset=st.sampled_from(["old", "older", TODAY]),
    user_agent=st.sampled_from(["GPTBot/1", "ClaudeBot/1", "Firefox/1", ""]),
).map(lambda row: {**row, **says(row["user_agent"])} if row["ruleset"] == TODAY else row)


@settings(deadline=None, derandomize=True, max_examples=8)
@given(st.lists(rows_of_any_rules), st.lists(rows_of_any_rules))
def test_moves_are_those_of_an_independent_count(
    tmp_path_factory: pytest.TempPathFactory, loaded: list[Row], hot: list[Row]
) -> None:
    site = Site(tmp_path_factory.mktemp("law") / "data")
    site.post(*loaded)
    site.load()
    site.post(*hot)
    rows = loaded + hot
    pairs = [
        (row, {**row, **says(row["user_agent"])})
        for row in rows
        if any(row[name] != says(row["user_agent"])[name] for name in ("traffic", "rule", "agent"))
    ]
    told = preview(site)
    assert run(site) == told
    assert told.hits == sum(row["ruleset"] != TODAY for row in rows)
    assert (told.moves.hits, told.moves.paths) == (len(pairs), len({(a["project_id"], a["path"]) for a, _ in pairs}))
    by_rule = Counter((a["traffic"], a["rule"], b["traffic"], b["rule"]) for a, b in pairs)
    assert {(m.old_traffic, m.old_rule, m.new_traffic, m.new_rule): m.hits for m in told.moves.by_rule} == by_rule
    change = Counter(b["traffic"] for _, b in pairs)
    change.subtract(a["traffic"] for a, _ in pairs)
    assert {c.traffic: c.hits for c in told.moves.by_traffic} == {kind: n for kind, n in change.items() if n}
    agents = Counter((b["traffic"], b["agent"]) for _, b in pairs if b["agent"])
    agents.subtract((a["traffic"], a["agent"]) for a, _ in pairs if a["agent"])
    assert {(c.traffic, c.agent): c.hits for c in told.moves.by_agent} == {each: n for each, n in agents.items() if n}
    assert_holds(site, under(rows))
    site.close()


def test_reader_counts_each_hit_once_at_every_step_and_by_the_new_rules_at_the_end(site: Site) -> None:
    """A person's two hits and an agent's one change places on the first day, a person's one goes over on the second."""
    store(site, OLD)
    views = site.views()
    seen: list[tuple[int, int]] = []

    def look(step: str) -> None:
        found = views.ranking("site", FIRST, LAST, NOON)
        seen.append((found.human, found.ai))

    look("before")
    run(site, on_step=look)
    look("after")
    views.close()
    assert (
        seen == [(4, 2)] * 2 + [(3, 3)] * 4 + [(2, 4)] * 8
    )  # from the commit of hits on, a noted day is counted by it


RECLASSIFY = """
from tests.warehouse.rules import RULES
from warehouse.maintenance import reclassify
told = reclassify.reclassify(hot, root, database, RULES, 60, on_step=on_step)
print(told.days, told.hits)
"""


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("step", reclassify.STEPS)
def test_killed_at_any_step_it_is_healed_by_the_next_load_and_completed_by_the_next_call(
    site: Site, step: str, passes: int
) -> None:
    store(site, OLD)
    die_at(site, RECLASSIFY, step, passes)
    site.post(*OLD)
    site.load()
    assert dirty_days.list_dirty(site.hot) == []
    assert site.faults() == []
    assert len(site.stored(delta_table.HITS_TABLE)) == site.daily_views().total() == 2 * len(OLD)
    run(site)
    assert_holds(site, under(2 * OLD))


def test_killed_between_the_tables_it_is_healed_by_the_next_call(site: Site) -> None:
    store(site, OLD)
    die_at(site, RECLASSIFY, "before commit of daily_views")
    assert dirty_days.list_dirty(site.hot) == ["2026-09-15"]
    run(site)
    assert_holds(site, under(OLD))


def test_loader_killed_between_its_commits_before_it_loses_and_repeats_nothing(site: Site) -> None:
    store(site, OLD)
    site.post(*OLD)
    die_at(site, "load.load(hot, root, 10, on_step)", "before commit of daily_views")
    run(site)
    site.load()
    assert_holds(site, under(2 * OLD))


def meanwhile(act: Callable[[], object]) -> Rules:
    """Rules that, asked for the first time, which is before the lake is held, let something else happen."""
    acts = [act]

    def ask(user_agents: list[str]) -> pa.Table:
        if acts:
            acts.pop()()
        return table(user_agents)

    return Rules(TODAY, ask)


def test_loader_killed_between_its_commits_meanwhile_loses_and_repeats_nothing(site: Site) -> None:
    store(site, OLD)

    def post_and_die() -> None:
        site.post(*OLD)
        die_at(site, "load.load(hot, root, 10, on_step)", "before commit of daily_views")

    run(site, meanwhile(post_and_die))
    site.load()
    assert_holds(site, under(2 * OLD))


def test_day_that_another_process_rewrote_meanwhile_is_left_alone(site: Site) -> None:
    store(site, OLD)
    told = run(site, meanwhile(lambda: run(site)))
    assert (told.days, told.hits, told.moves.hits) == (0, 0, 0)
    assert [site.state(spec).version for spec in delta_table.TABLES] == [len(OLD) + 3] * 2
    assert_holds(site, under(OLD))


def test_two_at_once_give_every_hit_todays_answer(site: Site) -> None:
    rows = [old("/a", f"GPTBot/{day}", ts=NOON + day * DAY) for day in range(12)]
    store(site, rows)
    script = (
        "import sys; from pathlib import Path\n"
        "from warehouse.hotlog import batches; from warehouse.query import engine\n"
        "folder = Path(sys.argv[1]); on_step = lambda step: None\n"
        "hot, root = batches.connect(folder / 'hot.sqlite'), folder / 'lake'\n"
        "database = engine.connect(folder / 'spill')"
    )
    command = [sys.executable, "-c", script + RECLASSIFY, site.root.parent]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for number in range(5):
        site.post(old("/b", "GPTBot/1", ts=NOON + number * DAY))
    told = [list(map(int, each.communicate(timeout=120)[0].split())) for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sum(days for days, _ in told) >= 12
    run(site)
    posted = [old("/b", "GPTBot/1", ts=NOON + number * DAY) for number in range(5)]
    assert_holds(site, under([*rows, *posted]))


def test_day_into_which_another_node_wrote_meanwhile_is_rewritten_again(site: Site, tmp_path: Path) -> None:
    other = batches.connect(tmp_path / "other.sqlite")
    wrote: list[Row] = []

    def write_once(step: str) -> None:
        if step == "before commit of hits" and not wrote:
            wrote.append(old("/other", "GPTBot/9"))
            batches.append(other, pa.RecordBatch.from_pylist(wrote, HOT), 0)
            catch_up.catch_up(other, site.root)

    store(site, OLD)
    run(site, on_step=write_once)
    assert_holds(site, under(OLD + wrote))
    other.close()


def test_rows_of_a_service_that_still_has_old_rules_are_moved_by_the_next_call(site: Site) -> None:
    store(site, OLD)
    run(site)
    site.post(old("/late", "GPTBot/1"))
    site.load()
    told = run(site)
    assert (told.days, told.hits, told.moves.hits) == (1, 1, 1)
    assert_holds(site, under([*OLD, old("/late", "GPTBot/1")]))


def test_it_waits_for_the_lock_and_gives_up(site: Site) -> None:
    with write_lock(site.root, 0), pytest.raises(LakeBusy):
        run(site)
