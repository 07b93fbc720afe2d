"""A project whose pages and log both count has a warning, until a policy counts one of them."""

from datetime import date

import pytest

from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.control.policy import Period, Periods, Policy
from warehouse.maintenance import double_counting
from warehouse.maintenance.double_counting import SEARCHED_DAYS
from warehouse.report.source_warnings import SourceWarning


def find(site: Site, policy: Periods = ()) -> dict[str, tuple[SourceWarning, ...]]:
    return double_counting.find(site.hot_log, site.root, site.spill, {"site": policy, "another": ()})


def test_people_of_two_sources_on_one_day_are_a_warning_in_the_words_of_the_coverage(site: Site) -> None:
    site.post(view(source="beacon"), view(source="log"), view(source="log", project_id="another"))
    site.load()
    with_policy = site.reports()
    (warning,) = with_policy.source_coverage(with_policy.take(), "site").warnings[:1]
    with_policy.close()
    assert "counted twice" in str(warning)
    assert find(site) == {"site": (warning,)}


@pytest.mark.parametrize(
    ("policy", "has_warning"),
    [("all", True), ("beacon_only", False), ("log_only", False), ("beacon_people_log_machines", False)],
)
def test_policy_that_counts_one_source_ends_the_warning(site: Site, policy: Policy, has_warning: bool) -> None:
    site.post(view(source="beacon"), view(source="log"))
    assert bool(find(site, (Period(date.min, policy),))) is has_warning


def test_beacons_are_found_in_posted_and_in_staged_rows_of_the_project_on_the_newest_days(site: Site) -> None:
    assert not double_counting.has_beacons(site.root, "site")
    site.post(view(source="beacon", ts=NOON - (SEARCHED_DAYS + 1) * DAY), view(source="beacon", project_id="another"))
    site.stage([view(ts=NOON - number * DAY) for number in range(SEARCHED_DAYS)])
    site.load()
    assert not double_counting.has_beacons(site.root, "site")
    assert double_counting.has_beacons(site.root, "another")
    site.post(view(source="beacon", ts=NOON - DAY))
    site.load()
    assert double_counting.has_beacons(site.root, "site")
    site.compact()
    assert double_counting.has_beacons(site.root, "site")
