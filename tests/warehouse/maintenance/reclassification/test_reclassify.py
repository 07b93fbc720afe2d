"""Each stored hit gets the classification of its user agent, both tables agree, and nothing else changes."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounds import rounds
from tests.warehouse.batch.tasks import DyingProcesses
from tests.warehouse.maintenance.reclassification.rules import RULES, TODAY, classification_of, table
from tests.warehouse.site import DAY, NOON, ROOT, Row, Site, die_at, rank, view
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.errors import LakeBusy
from warehouse.hotlog import batches
from warehouse.lake.lock import write_lock
from warehouse.maintenance import catch_up, compact
from warehouse.maintenance.reclassification import reclassify
from warehouse.maintenance.reclassification.diff import CountChange, RuleChange
from warehouse.maintenance.reclassification.reclassify import Reclassified, Rules
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, TABLES

MIDNIGHT = datetime(2026, 10, 1, tzinfo=UTC)
FIRST, LAST = NOON - 100 * DAY, NOON + 100 * DAY


def run(site: Site, rules: Rules = RULES, executor: Executor = THIS_PROCESS) -> Reclassified:
    return reclassify.reclassify(site.hot, site.root, site.share, rules, 0, executor=executor)


def preview(site: Site, rules: Rules = RULES) -> Reclassified:
    return reclassify.reclassify(site.hot, site.root, site.share, rules, 0, is_preview=True)


def reclassified(rows: Iterable[Row]) -> list[Row]:
    """Return rows as they are expected after the run."""
    return [{**row, **classification_of(row["user_agent"])} for row in rows]


def whole(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in HOT.names)


def assert_stored(site: Site, rows: list[Row]) -> None:
    """Check that `hits` has exactly these rows, in all columns, and that the doctor finds no fault."""
    stored = site.stored(HITS_TABLE)
    assert Counter(map(whole, stored)) == Counter(map(whole, rows))
    assert all(row["date"] == row["ts"].date() for row in stored)
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
"""Hits of three days. The only hit of one of them, a person's with Firefox, keeps its classification."""


def store(site: Site, rows: Iterable[Row]) -> None:
    """Store each row in a file of its own."""
    for row in rows:
        site.post(row)
        site.load()


def store_old(site: Site) -> None:
    store(site, OLD)


@pytest.fixture
def old_site(tmp_path: Path) -> Iterator[Site]:
    """Yield a site with OLD in the lake."""
    with closing(Site.after(store_old, tmp_path / "old")) as site:
        yield site


@pytest.mark.long
@pytest.mark.parametrize("call", [preview, run])
def test_result_has_the_diff_by_rule_by_traffic_and_by_agent(site: Site, call: Any) -> None:
    site.post(*OLD)
    result = call(site)
    assert (result.days, result.hits, result.user_agents) == (3, 8, 4)
    assert (result.moves.hits, result.moves.paths) == (7, 4)
    assert result.moves.by_rule == (
        RuleChange("human", "human", "ai", "ai:GPTBot", hits=4, paths=3),
        RuleChange("ai", "ai:GPTBot", "ai", "ai:ClaudeBot", hits=1, paths=1),
        RuleChange("ai", "ai:GPTBot", "human", "human", hits=1, paths=1),
        RuleChange("bot", "bot:x", "bot", "bot:empty", hits=1, paths=1),
    )
    assert result.moves.by_traffic == (CountChange("ai", None, 3), CountChange("human", None, -3))
    assert result.moves.by_agent == (
        CountChange("ai", "GPTBot", 2),
        CountChange("ai", "ClaudeBot", 1),
        CountChange("bot", "x", -1),
    )


@pytest.mark.long
def test_each_hit_has_the_classification_of_the_current_rules_afterwards(old_site: Site) -> None:
    old_site.post(*OLD)
    run(old_site)
    assert_stored(old_site, reclassified(2 * OLD))


@pytest.mark.long
def test_preview_loads_the_hot_log_and_changes_nothing_else(site: Site) -> None:
    site.post(*OLD)
    result = preview(site)
    versions = [site.state(spec).version for spec in TABLES]
    assert preview(site) == result
    assert [site.state(spec).version for spec in TABLES] == versions == [1] * len(TABLES)
    assert_stored(site, OLD)


@pytest.mark.long
def test_run_under_the_same_rules_makes_no_commit_and_classifies_nothing(old_site: Site) -> None:
    run(old_site)
    versions = [old_site.state(spec).version for spec in TABLES]

    def refuse(user_agents: list[str]) -> pa.Table:
        raise AssertionError(user_agents)

    result = run(old_site, Rules(TODAY, refuse))
    assert (result.days, result.hits, result.user_agents, result.moves.hits) == (0, 0, 0, 0)
    assert [old_site.state(spec).version for spec in TABLES] == versions


def test_run_over_empty_tables_makes_no_commit(site: Site) -> None:
    assert run(site) == preview(site)
    assert {site.state(spec).version for spec in TABLES} == {0}


@pytest.mark.long
def test_only_days_with_a_row_of_another_ruleset_are_rewritten(site: Site) -> None:
    new = reclassified([old("/a", "GPTBot/1"), old("/a", "GPTBot/1", ts=NOON + 2 * DAY)])
    mixed = [old("/a", "GPTBot/1", ts=NOON + 2 * DAY, event_id="e")]
    store(site, [*new, *mixed])
    before = {file.path for file in site.state(HITS_TABLE).files if file.partition == "2026-09-15"}
    assert run(site).days == 1
    assert before < {file.path for file in site.state(HITS_TABLE).files}
    assert_stored(site, [*new, *reclassified(mixed)])


@pytest.mark.long
def test_day_of_several_files_becomes_one_file_in_the_order_of_the_table(site: Site) -> None:
    rows = [old(f"/{number}", "GPTBot/1", ts=NOON - timedelta(seconds=number)) for number in range(8)]
    store(site, rows)
    run(site)
    (file,) = site.state(HITS_TABLE).files
    stored = site.stored(HITS_TABLE)
    assert file.rows == 8
    assert stored == sorted(stored, key=lambda row: tuple(row[name] for name in HITS_TABLE.order))
    assert_stored(site, reclassified(rows))


@pytest.mark.long
def test_hits_at_the_ends_of_days_and_months_stay_in_their_partitions(site: Site) -> None:
    just = timedelta(microseconds=1)
    instants = [MIDNIGHT, MIDNIGHT - just, MIDNIGHT - DAY, MIDNIGHT - DAY - just, datetime(1970, 1, 1, tzinfo=UTC)]
    rows = [old("/a", "GPTBot/1", ts=ts) for ts in instants]
    site.post(*rows)
    assert run(site).days == 4
    assert_stored(site, reclassified(rows))


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


@pytest.mark.long
def test_unusual_user_agents_and_null_columns_are_unchanged(site: Site) -> None:
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
    assert_stored(site, reclassified(rows))


@pytest.mark.long
def test_user_agents_of_a_day_are_classified_in_several_calls(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclassify, "CLASSIFY_BATCH", 2)
    rows = [old("/a", f"GPTBot/{number % 5}", ts=NOON + number % 2 * DAY) for number in range(20)]
    calls: list[list[str]] = []

    def ask(user_agents: list[str]) -> pa.Table:
        calls.append(user_agents)
        return table(user_agents)

    site.post(*rows)
    result = run(site, Rules(TODAY, ask))
    assert (result.days, result.hits, result.user_agents) == (2, 20, 5)
    assert sorted(map(len, calls)) == [1, 1, 2, 2, 2, 2]
    assert_stored(site, reclassified(rows))


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
).map(lambda row: {**row, **classification_of(row["user_agent"])} if row["ruleset"] == TODAY else row)


@pytest.mark.long
@settings(max_examples=rounds(8))
@given(st.lists(rows_of_any_rules), st.lists(rows_of_any_rules))
def test_diff_equals_an_independent_count(
    tmp_path_factory: pytest.TempPathFactory, loaded: list[Row], hot: list[Row]
) -> None:
    site = Site(tmp_path_factory.mktemp("law") / "data")
    site.post(*loaded)
    site.load()
    site.post(*hot)
    rows = loaded + hot
    pairs = [
        (row, {**row, **classification_of(row["user_agent"])})
        for row in rows
        if any(row[name] != classification_of(row["user_agent"])[name] for name in ("traffic", "rule", "agent"))
    ]
    result = preview(site)
    assert run(site) == result
    assert result.hits == sum(row["ruleset"] != TODAY for row in rows)
    assert (result.moves.hits, result.moves.paths) == (
        len(pairs),
        len({(a["project_id"], a["path"]) for a, _ in pairs}),
    )
    kinds = [((a["traffic"], a["rule"]), (b["traffic"], b["rule"])) for a, b in pairs]
    by_rule = Counter((*old, *new) for old, new in kinds if old != new)
    assert {(m.old_traffic, m.old_rule, m.new_traffic, m.new_rule): m.hits for m in result.moves.by_rule} == by_rule
    change = Counter(b["traffic"] for _, b in pairs)
    change.subtract(a["traffic"] for a, _ in pairs)
    assert {c.traffic: c.hits for c in result.moves.by_traffic} == {kind: n for kind, n in change.items() if n}
    agents = Counter((b["traffic"], b["agent"]) for _, b in pairs if b["agent"])
    agents.subtract((a["traffic"], a["agent"]) for a, _ in pairs if a["agent"])
    assert {(c.traffic, c.agent): c.hits for c in result.moves.by_agent} == {each: n for each, n in agents.items() if n}
    assert_stored(site, reclassified(rows))
    site.close()


@pytest.mark.long
def test_report_counts_each_hit_once_after_each_day_and_by_the_new_rules_at_the_end(old_site: Site) -> None:
    # On the first day, two human hits become AI and one AI hit human. On the second day, one human hit becomes AI.
    reports = old_site.reports()
    seen: list[tuple[int, int]] = []

    def look(*_: int) -> None:
        ranking = rank(reports, "site", FIRST, LAST, NOON)
        seen.append((ranking.human, ranking.ai))

    look()
    reclassify.reclassify(old_site.hot, old_site.root, old_site.share, RULES, 0, look)
    reports.close()
    assert seen == [(4, 2), (3, 3), (2, 4), (2, 4)]


RECLASSIFY = """
from tests.warehouse.maintenance.reclassification.rules import RULES
from warehouse.lake import rewriting
from warehouse.maintenance.reclassification import reclassify
replace_files = rewriting.replace_files

def replace(*arguments):
    on_point("before commit")
    replace_files(*arguments)
    on_point("after commit")

rewriting.replace_files = replace
result = reclassify.reclassify(hot, root, share, RULES, 60)
print(result.days, result.hits)
"""


@pytest.mark.long
@pytest.mark.parametrize(("step", "passes"), [("before commit", 1), ("after commit", 0)])
def test_tables_agree_after_the_load_that_follows_a_kill_and_the_next_run_completes(
    old_site: Site, step: str, passes: int
) -> None:
    die_at(old_site, RECLASSIFY, step, passes)
    old_site.post(*OLD)
    old_site.load()
    assert old_site.faults() == []
    assert len(old_site.stored(HITS_TABLE)) == 2 * len(OLD)
    run(old_site)
    assert_stored(old_site, reclassified(2 * OLD))


@pytest.mark.long
def test_run_after_a_loader_killed_between_its_commits_loses_and_repeats_nothing(old_site: Site) -> None:
    old_site.post(*OLD)
    die_at(old_site, "load.load(hot, root, 10, on_point)", "before commit of asset_loads")
    run(old_site)
    old_site.load()
    assert_stored(old_site, reclassified(2 * OLD))


def meanwhile(act: Callable[[], object]) -> Rules:
    """Return rules that call `act` at their first call, when the lake is not locked yet."""
    acts = [act]

    def ask(user_agents: list[str]) -> pa.Table:
        if acts:
            acts.pop()()
        return table(user_agents)

    return Rules(TODAY, ask)


@pytest.mark.long
def test_loader_killed_between_its_commits_during_the_run_loses_and_repeats_nothing(old_site: Site) -> None:

    def post_and_die() -> None:
        old_site.post(*OLD)
        die_at(old_site, "load.load(hot, root, 10, on_point)", "before commit of asset_loads")

    run(old_site, meanwhile(post_and_die))
    old_site.load()
    assert_stored(old_site, reclassified(2 * OLD))


@pytest.mark.long
def test_day_that_another_process_rewrites_during_the_run_is_not_rewritten_again(old_site: Site) -> None:
    result = run(old_site, meanwhile(lambda: run(old_site)))
    assert (result.days, result.hits, result.moves.hits) == (0, 0, 0)
    assert [old_site.state(spec).version for spec in TABLES] == [len(OLD) + 3, *[len(OLD)] * (len(TABLES) - 1)]
    assert_stored(old_site, reclassified(OLD))


@pytest.mark.long
def test_two_concurrent_runs_reclassify_each_hit(site: Site) -> None:
    rows = [old("/a", f"GPTBot/{day}", ts=NOON + day * DAY) for day in range(12)]
    site.post(*rows)
    site.load()
    script = (
        "import sys; from warehouse.lake.roots import LocalPath\n"
        "from warehouse.hotlog import batches; from warehouse.query import engine\n"
        "folder = LocalPath(sys.argv[1]); on_point = lambda point: None\n"
        "hot, root = batches.connect(folder / 'hot.sqlite'), folder / 'lake'\n"
        "share = engine.Share(folder / 'spill')"
    )
    command = [sys.executable, "-c", script + RECLASSIFY, site.root.parent]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for number in range(5):
        site.post(old("/b", "GPTBot/1", ts=NOON + number * DAY))
    result = [list(map(int, each.communicate(timeout=120)[0].split())) for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sum(days for days, _ in result) >= 12
    run(site)
    posted = [old("/b", "GPTBot/1", ts=NOON + number * DAY) for number in range(5)]
    assert_stored(site, reclassified([*rows, *posted]))


@pytest.mark.long
def test_hits_that_another_node_appends_meanwhile_are_reclassified_too(old_site: Site, tmp_path: Path) -> None:
    other = batches.connect(tmp_path / "other.sqlite")
    wrote = [old("/other", "GPTBot/9")]

    def write() -> None:
        batches.append(other, pa.RecordBatch.from_pylist(wrote, HOT), 0)
        catch_up.catch_up(other, old_site.root)

    assert run(old_site, meanwhile(write)).hits == len(OLD) + 1
    assert_stored(old_site, reclassified(OLD + wrote))
    other.close()


@pytest.mark.long
def test_hits_that_wait_meanwhile_are_reclassified_too(old_site: Site) -> None:
    new = old("/new", "ClaudeBot/2")
    assert run(old_site, meanwhile(lambda: old_site.post(new))).hits == len(OLD) + 1
    assert_stored(old_site, reclassified([*OLD, new]))


@pytest.mark.long
def test_files_that_another_process_compacted_and_deleted_are_not_read(site: Site) -> None:
    rows = [old("/a", "GPTBot/1", ts=NOON + day * DAY) for day in range(4) for _ in range(2)]
    store(site, rows)

    def compact_and_vacuum(done: int = 0, total: int = 0) -> None:
        site.compact()
        site.age()
        compact.vacuum(site.hot, site.root, 0)

    result = reclassify.reclassify(site.hot, site.root, site.share, RULES, 0, compact_and_vacuum)
    assert (result.days, result.hits) == (4, 8)
    assert_stored(site, reclassified(rows))


@pytest.mark.long
def test_reclassification_in_processes_is_exact_if_one_is_killed_after_it_wrote_its_files(
    old_site: Site, tmp_path: Path
) -> None:
    expected = preview(old_site)
    children = DyingProcesses(2, tmp_path / "died")
    try:
        assert run(old_site, executor=children) == expected
    finally:
        children.close()
    assert (tmp_path / "died").exists()
    assert_stored(old_site, reclassified(OLD))


@pytest.mark.long
def test_next_run_reclassifies_rows_of_a_service_that_still_has_old_rules(old_site: Site) -> None:
    run(old_site)
    old_site.post(old("/late", "GPTBot/1"))
    old_site.load()
    result = run(old_site)
    assert (result.days, result.hits, result.moves.hits) == (1, 1, 1)
    assert_stored(old_site, reclassified([*OLD, old("/late", "GPTBot/1")]))


def test_run_times_out_on_the_lock(site: Site) -> None:
    with write_lock(site.root, 0), pytest.raises(LakeBusy):
        run(site)
