"""The errors of a moment are those of its batches, in any process and after any loads, compactions and deletions."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.warehouse.site import NOON, Row, Site, view
from warehouse.errors import InvalidMoment, MomentExpired
from warehouse.maintenance import compact, erase
from warehouse.query.moment import Moment
from warehouse.report.audience.requests import RequestQuery
from warehouse.report.reports import Reports


def process(site: Site) -> "closing[Reports]":
    """Return the reports of a new process."""
    return closing(site.reports())


def error(number: int, project: str = "site", ts: datetime = NOON) -> Row:
    reader = {"traffic": "ai", "agent": "GPTBot", "rule": "ai:GPTBot", "status": 404}
    return view(f"/gone/{number}", ts, project_id=project, **reader)


def numbers(reports: Reports, moment: Moment, project: str = "site") -> list[int]:
    """Return the numbers of the errors of a moment, as a request for them does."""
    rows = reports.errors(RequestQuery(project), reports.take(moment).moment).to_pylist()
    assert all(row["requests"] == 1 for row in rows)
    return sorted(int(row["path"].removeprefix("/gone/")) for row in rows)


@pytest.mark.night
def test_each_of_many_moments_has_its_errors_after_all_changes(site: Site) -> None:
    with process(site) as first:
        moments = [first.take().moment]
        for number in range(30):
            if number % 7 == 3:
                site.stage([view(f"/{number}"), error(number)])
            else:
                site.post(view(f"/{number}"), error(number, ts=datetime(2026, 8 + number % 2, 1, tzinfo=UTC)))
            moments.append(first.take().moment)
            assert numbers(first, moments[-1]) == [*range(number + 1)]
            if number % 4 == 2:
                site.load()
            if number % 10 == 9:
                site.compact()
                compact.vacuum(site.hot, site.root, 0)
        with process(site) as second:
            for each in (first, second, second):
                assert [numbers(each, moment) for moment in moments[::-1]] == [[*range(n)] for n in range(30, -1, -1)]


def test_moment_whose_errors_are_gone_is_refused(site: Site) -> None:
    with process(site) as first:
        site.post(error(0))
        moment = first.take().moment
        assert numbers(first, moment) == [0]
        site.post(error(1))
        site.load()
        assert numbers(first, moment) == [0]
        site.expire()
        assert numbers(first, moment) == [0]  # the rows are in memory
        with process(site) as second, pytest.raises(MomentExpired, match="rows of the moment .* were removed"):
            second.errors(RequestQuery("site"), moment)


def test_moment_before_the_oldest_commit_in_the_log_is_refused(site: Site) -> None:
    with process(site) as first:
        site.post(error(0))
        moment = first.take().moment
        site.post(error(1))
        site.load()
        site.age()  # the next vacuum may delete the commits up to now
        compact.vacuum(site.hot, site.root, 0)
        with pytest.raises(MomentExpired):
            first.errors(RequestQuery("site"), moment)


@pytest.mark.long
@pytest.mark.parametrize("is_project", [True, False], ids=["project", "days"])
def test_moment_that_a_client_changed_does_not_have_erased_errors(site: Site, is_project: bool) -> None:
    site.post(view(project_id="goes"), view())
    site.post(error(1, "goes", datetime(2026, 1, 1, tzinfo=UTC)), error(2))
    site.load()
    site.post(error(3))
    with process(site) as first:
        assert numbers(first, first.take().moment, "goes") == [1]
        if is_project:
            erase.erase_hits(site.hot, site.root, site.share, erase.Chosen("goes"), 0)
        else:
            erase.erase_before(site.hot, site.root, NOON.date(), 30, 0)
        site.post(error(4))
        after = first.take().moment
        site.post(error(5))
        site.load()
        assert numbers(first, after) == [2, 3, 4]
        read = []
        for last_id in range(after.last_id + 2):
            changed = replace(after, last_id=last_id)
            try:
                read.append(numbers(first, changed, "goes"))
            except (InvalidMoment, MomentExpired):
                continue
        assert read == [[]] * 3  # after the erasure: of three, four and five batches
