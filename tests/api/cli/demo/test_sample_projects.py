"""The sample projects: each shows other features of the dashboard."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from agent.errors import NotConfigured
from agent.jobs import configuration, journal, store
from agent.jobs.job import Status
from api import data_folder, settings
from api.accounts import keys, share_links
from api.cli.demo import sample_projects, sample_views
from api.dashboard.robots import texts
from api.dashboard.robots.rules import parse
from api.settings import Settings
from warehouse.control import database, projects, source_policies
from warehouse.database.pool import Pool
from warehouse.query.snapshot import SnapshotReader
from warehouse.report.audience.requests import RequestQuery
from warehouse.report.reports import Reports
from warehouse.report.source_coverage import Coverage

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    chosen = settings.read({}, tmp_path_factory.mktemp("demo") / "data")
    data_folder.prepare(chosen)
    return chosen


@pytest.fixture(scope="module")
def engine(demo: Settings) -> Iterator[Pool]:
    engine = database.connect(demo.database_url)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def share(demo: Settings, engine: Pool) -> str:
    """Create the projects, and return the token of the share link."""
    assert not sample_projects.exists(engine)
    return sample_projects.create(engine, demo, NOW)


@pytest.fixture(scope="module")
def coverage(demo: Settings, engine: Pool, share: str) -> dict[str, Coverage]:
    reader, policy_of = SnapshotReader(demo.hot_log, demo.lake, NOW.timestamp), partial(source_policies.periods, engine)
    with closing(Reports(reader, demo.lake, demo.run / "spill", demo.cache_bytes, policy_of)) as reports:
        return {id: reports.source_coverage(reports.take(), id) for id in sample_projects.ORIGINS}


@pytest.mark.long
def test_demo_has_three_sources_with_a_gap_and_no_warning(coverage: dict[str, Coverage]) -> None:
    sources = {source.source: source for source in coverage["demo"].sources}
    assert {name: len(source.missing_days) for name, source in sources.items()} == {"beacon": 0, "server": 3, "log": 0}
    assert sources["log"].first_hit < sources["server"].first_hit < sources["beacon"].first_hit
    assert {source.last_hit.date() for source in sources.values()} == {datetime(2026, 11, 21, tzinfo=UTC).date()}
    assert coverage["demo"].warnings == ()


def test_other_projects_have_warnings_and_hardly_any_views(coverage: dict[str, Coverage]) -> None:
    counted_twice, silent = coverage["forum"].warnings
    assert "counted twice" in str(counted_twice)
    assert re.fullmatch(r"log has had no hit for \d+ days, since 2026-11-10", str(silent))
    assert [source.source for source in coverage["new-blog"].sources] == ["beacon"]


def test_forum_counts_people_from_beacons_since_a_day(coverage: dict[str, Coverage]) -> None:
    forum = coverage["forum"]
    assert forum.policy == "beacon_people_log_machines"
    assert "on 8 days, the last of them 2026-11-01" in str(forum.warnings[0])
    assert forum.overlap_days > 10
    assert forum.unbeaconed > 5


def test_log_of_the_demo_has_sizes_times_and_cache_states(demo: Settings, share: str, tmp_path: Path) -> None:
    beacons = sample_views.write_log(tmp_path / "log", "demo", sample_views.days_moved(NOW.date()), 0)
    reader = SnapshotReader(demo.hot_log, demo.lake, NOW.timestamp)
    with closing(Reports(reader, demo.lake, demo.run / "spill", demo.cache_bytes)) as reports:
        rows = reports.requests(RequestQuery("demo"), reports.take().moment, "kind").to_pylist()
    assert sum(row["requests"] for row in rows) == 4_953 - len(beacons)  # the requests that awk counts
    assert all(row["requests"] == row["sized"] == row["timed"] == row["cached"] for row in rows)
    pages, robots = (next(row for row in rows if row["value"] == kind) for kind in ("page", "robots"))
    assert pages["cache_hits"] / pages["cached"] < robots["cache_hits"] / robots["cached"] < 1
    assert pages["p95_ms"] > robots["p95_ms"]


def test_jobs_have_ended_and_no_worker_runs_one(engine: Pool, share: str) -> None:
    jobs, _ = store.list_page(engine, "demo", None, 10, 0)
    assert [job.status for job in jobs] == [Status.COMPLETED, Status.FAILED, Status.ARCHIVED]
    assert [job.pull_request is not None for job in jobs] == [True, False, False]
    turns = [turn for job in jobs for turn in journal.turns(engine, job.id, 10)]
    assert {turn.state for turn in turns} == {"done", "failed"}
    assert all(turn.prompt.startswith("Sample:") for turn in turns)
    outputs = [[entry.text for entry in turn.entries if entry.kind == "output"] for turn in turns]
    assert all(len(texts) == 1 and "no coding agent ran" in texts[0] for texts in outputs)
    with engine.connect() as connection, pytest.raises(NotConfigured):
        configuration.load(connection, "demo")


def test_demo_has_a_valid_an_expired_and_a_revoked_key(engine: Pool, share: str) -> None:
    listed = keys.list_all(engine, "demo")
    now_s = NOW.timestamp()
    assert sorted((key.is_valid(now_s), key.revoked_s is not None) for key in listed) == [
        (False, False),
        (False, True),
        (True, False),
    ]


def test_share_link_opens_the_demo(engine: Pool, share: str) -> None:
    link = share_links.find(engine, share)
    assert link is not None
    assert link.project == "demo"


def test_demo_has_the_robots_txt_of_the_sample_site(engine: Pool, share: str) -> None:
    before, text = texts.versions(engine, "demo")
    assert (NOW.date() - text.since.date()).days == 13
    assert parse(before.content).state(["GPTBot"]) == "partly"
    rules = parse(text.content)
    agents = ("Bytespider", "CCBot", "GPTBot")
    assert [rules.state([agent]) for agent in agents] == ["disallowed", "partly", "partly"]


@pytest.mark.long
def test_interrupted_start_is_repeated_without_counting_twice(tmp_path: Path) -> None:
    """Delete the projects, as if the first start had ended before they were created, and start again."""
    demo = settings.read({}, tmp_path / "data")
    data_folder.prepare(demo)
    engine = database.connect(demo.database_url)

    def views() -> int:
        reader = SnapshotReader(demo.hot_log, demo.lake, NOW.timestamp)
        with closing(Reports(reader, demo.lake, demo.run / "spill", demo.cache_bytes)) as reports:
            lines = reports.sparklines(reports.take(), list(sample_projects.ORIGINS), NOW)
            return sum(sum(line.human) + sum(line.ai) for line in lines.values())

    sample_projects.create(engine, demo, NOW)
    before = views()
    for id in sample_projects.ORIGINS:
        store.remove(engine, id)
        projects.delete(engine, id)
    sample_projects.create(engine, demo, NOW)
    assert views() == before > 2_000
    engine.close()
