"""The coverage of a project names what each of its sources sent, and what its owner should know about the counts."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import ROWS, LakeIn, SmallLake
from tests.warehouse.site import DAY, NOON, Row, view
from warehouse.control.policy import Period, Periods, Policy
from warehouse.query.snapshot import Snapshot
from warehouse.report.source_coverage import Coverage
from warehouse.report.source_coverage import coverage as source_coverage
from warehouse.report.source_warnings import MISSING_DAYS_MAX, SourceWarning

BOT = {"traffic": "bot", "rule": "bot:empty"}


def coverage(lake: SmallLake, rows: Sequence[Row], now: datetime = NOON, policy: Periods = ()) -> Coverage:
    """Return the coverage of waiting rows under a source policy."""
    lake.waiting = reference.hot(rows)
    return source_coverage(lake.use(), at(lake, now), "site", policy)


def at(lake: SmallLake, now: datetime) -> Snapshot:
    """Return the snapshot that was taken at a time."""
    taken_us = (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return replace(lake.snapshot, moment=replace(lake.snapshot.moment, taken_us=taken_us))


def human(source: str, ts: datetime = NOON) -> Row:
    return view(source=source, ts=ts)


def texts(known: Coverage) -> tuple[str, ...]:
    return tuple(map(str, known.warnings))


def test_missing_days_are_those_without_a_hit_between_the_first_and_the_last(small_lake: SmallLake) -> None:
    last = datetime(2026, 9, 15, tzinfo=UTC)
    rows = [view(ts=NOON - 4 * DAY, **BOT), view(ts=NOON - 2 * DAY, project_id="another"), human("log", last)]
    (source,) = coverage(small_lake, [*rows, human("log", NOON - 3 * DAY)]).sources
    assert (source.source, source.first_hit, source.last_hit) == ("log", NOON - 4 * DAY, last)
    assert source.missing_days == (date(2026, 9, 13), date(2026, 9, 14))


def test_project_without_a_hit_has_no_source_and_no_warning(small_lake: SmallLake) -> None:
    assert coverage(small_lake, [view(project_id="another")]) == Coverage((), "all", ())


def test_only_the_last_of_many_missing_days_are_listed(small_lake: SmallLake) -> None:
    count = MISSING_DAYS_MAX + 5
    result = coverage(small_lake, [human("log", NOON - (count + 1) * DAY), human("log")])
    (source,) = result.sources
    assert source.missing_days == tuple(NOON.date() - number * DAY for number in range(MISSING_DAYS_MAX, 0, -1))
    assert texts(result) == (
        "log had no hit on 1,005 days between its first and its last hit; only the last 1,000 of these days are listed",
    )


def test_missing_days_since_the_year_1_are_counted(small_lake: SmallLake) -> None:
    result = coverage(
        small_lake, [human("log", datetime(1, 1, 1, tzinfo=UTC)), human("log", NOON - 2 * DAY), human("log")]
    )
    (source,) = result.sources
    assert source.missing == (NOON.date() - date(1, 1, 1)).days - 2
    assert (len(source.missing_days), source.missing_days[-2:]) == (
        MISSING_DAYS_MAX,
        (NOON.date() - 3 * DAY, NOON.date() - DAY),
    )
    assert list(source.missing_days) == sorted(source.missing_days)
    (warning,) = result.warnings
    assert str(warning).startswith(f"log had no hit on {source.missing:,} days")


def test_two_sources_with_views_of_people_on_one_day_are_a_warning(small_lake: SmallLake) -> None:
    days = [NOON - DAY, NOON]
    result = coverage(small_lake, [human(source, day) for source in ("beacon", "log") for day in days])
    (warning,) = result.warnings
    assert warning == SourceWarning("counted_twice", ("beacon", "log"), 2, NOON.date())
    assert str(warning) == (
        "beacon and log both have views of people on 2 days, the last of them 2026-09-15: "
        "a view that both sources sent is counted twice"
    )


@pytest.mark.parametrize(
    ("policy", "pairs"),
    [
        ("all", {"beacon and server", "beacon and log", "server and log"}),
        ("beacon_only", set()),
        ("log_only", {"server and log"}),
        ("beacon_people_log_machines", set()),
    ],
)
def test_warning_names_the_sources_that_both_count_people_under_the_policy(
    small_lake: SmallLake, policy: Policy, pairs: set[str]
) -> None:
    rows = [human(source) for source in ("beacon", "server", "log")]
    result = coverage(small_lake, rows, policy=(Period(date.min, policy),))
    assert {" and ".join(warning.sources) for warning in result.warnings} == pairs
    earlier = coverage(small_lake, rows, policy=(Period(NOON.date() + DAY, policy),))
    assert len(earlier.warnings) == 3  # the policy begins on the next day


@pytest.mark.parametrize(
    ("policy", "unbeaconed"), [("all", 0), ("beacon_only", 0), ("log_only", 0), ("beacon_people_log_machines", 2)]
)
def test_unbeaconed_views_are_those_of_people_in_logs_where_people_count_from_beacons(
    small_lake: SmallLake, policy: Policy, unbeaconed: int
) -> None:
    rows = [human("log"), human("server"), human("beacon"), view(source="log", format="md"), view(source="log", **BOT)]
    assert coverage(small_lake, rows, policy=(Period(date.min, policy),)).unbeaconed == unbeaconed


def test_unbeaconed_views_that_beacons_of_the_same_day_can_have_counted(small_lake: SmallLake) -> None:
    rows = [human("log"), human("log"), human("log"), human("beacon"), human("log", NOON - DAY), human("server")]
    known = coverage(small_lake, rows, policy=(Period(date.min, "beacon_people_log_machines"),))
    assert (known.unbeaconed, known.beaconed) == (5, 1)


def test_sources_on_different_days_or_with_machines_only_are_no_warning(small_lake: SmallLake) -> None:
    assert coverage(small_lake, [human("beacon"), human("log", NOON - DAY)]).warnings == ()
    assert (
        coverage(small_lake, [human("beacon"), view(source="log", traffic="ai"), view(source="server", **BOT)]).warnings
        == ()
    )


def test_source_that_is_silent_for_seven_days_is_a_warning(small_lake: SmallLake) -> None:
    assert coverage(small_lake, [human("beacon")], NOON + 7 * DAY - timedelta(microseconds=1)).warnings == ()
    assert texts(coverage(small_lake, [human("beacon")], NOON + 7 * DAY)) == (
        "beacon has had no hit for 7 days, since 2026-09-15",
    )


@pytest.mark.long
@settings(max_examples=rounds(50))
@given(st.lists(ROWS, max_size=20), st.booleans())
def test_coverage_of_files_is_that_of_the_rows_in_them(lake_in: LakeIn, rows: list[Row], is_covered: bool) -> None:
    with temporary.folder() as folder:
        lake = lake_in(Path(folder))
        lake.add(rows, "one")
        if is_covered:
            lake.write_rollups(with_ranking=False)
        sources = source_coverage(lake.use(), at(lake, NOON), "site").sources
    times = {
        source: sorted(row["ts"] for row in rows if (row["source"], row["project_id"]) == (source, "site"))
        for source in ("beacon", "server", "log")
    }
    assert {each.source: (each.first_hit, each.last_hit) for each in sources} == {
        source: (hits[0], hits[-1]) for source, hits in times.items() if hits
    }
    for each in sources:
        days_with_hits = {ts.date() for ts in times[each.source]}
        length = (max(days_with_hits) - min(days_with_hits)).days + 1
        assert len(each.missing_days) == length - len(days_with_hits)
        assert not days_with_hits & set(each.missing_days)
