"""The source policy on the page Set up: what it counts, what was measured, and its change by an owner."""

from collections.abc import Iterator
from datetime import date
from html import unescape

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.ai.ai_traffic import UNKNOWN
from tests.api.dashboard.pages.reading.overview.test_unmeasured import post_old_beacon
from tests.api.dashboard.site import FIREFOX, Dashboard, opened, post
from tests.processes.running import new_key
from tests.warehouse.site import DAY, NOON
from warehouse.control import source_policies
from warehouse.control.policy import POLICIES, Period, Policy

PROJECT = "twice"
PATH = f"/projects/{PROJECT}/setup"
DAYS = f"from={(NOON - 3 * DAY).date()}&to={NOON.date()}"


def fill(dashboard: Dashboard, project: str) -> str:
    """Create a project with people in the script and the server on two days, and return the path of its page."""
    readers = [(FIREFOX, NOON - DAY), (FIREFOX, NOON), (FIREFOX, NOON), ("GPTBot/1.3", NOON)]
    hits = [{"path": "/a", "userAgent": name, "timestamp": at.isoformat()} for name, at in readers]
    dashboard.post_hits(*hits, project=project, key=new_key(dashboard.data, project))
    for at in (NOON - DAY, NOON):
        post_old_beacon(dashboard, project, at)
    return f"/projects/{project}/setup"


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """Yield a dashboard with a filled project. Reports use an earlier policy of a project for up to 2 s."""
    with opened(tmp_path_factory.mktemp("policy") / "data") as dashboard:
        fill(dashboard, PROJECT)
        yield dashboard


@pytest.fixture
def owner(twice: Dashboard) -> Iterator[TestClient]:
    """Yield a client of an owner; the policy of the test is removed at its end."""
    client = twice.visitor("owner")
    yield client
    assert post(client, f"{PATH}/policy", policy="all").status_code == 303


def page_of(client: TestClient, path: str = PATH) -> Html:
    return Html(unescape(client.get(path).text))


def test_default_policy_warns_about_people_who_are_counted_twice(twice: Dashboard) -> None:
    page = page_of(twice.visitor("viewer"), fill(twice, "no-policy"))
    assert "Every source ( all ) since the first day." in page.text
    assert "On 2 days (UTC) both the website script and your server or access logs have views by people." in page.text
    assert "views by people. A policy that counts people from one of the two counts each person once" in page.text
    assert page.text.count("is counted twice. Choose which sources count") == page.text.count("is counted twice") == 1
    assert len(page.rows("Which sources count")) == len(POLICIES)
    assert page.rows("Which sources count")[0][0] == "Every sourcetoday"


def test_policy_of_a_project_with_one_source_is_not_on_the_page_and_has_no_link(twice: Dashboard) -> None:
    new_key(twice.data, "no-source")
    for path, is_shown in ((PATH, True), ("/projects/no-source/setup", False)):
        page = page_of(twice.visitor("viewer"), path)
        assert ("#source-policy" in page.links(), "Which sources count" in page.text) == (is_shown, is_shown)
        assert ("Once both have sent views, choose on this page" in page.text) != is_shown


@pytest.mark.long
def test_people_of_two_sources_count_twice_under_a_stored_policy(twice: Dashboard, owner: TestClient) -> None:
    for project, policy, day in (("confirmed", "confirmed_people", "2026-09-01"), ("later", "log_only", "2100-12-31")):
        path = fill(twice, project)
        assert post(owner, f"{path}/policy", policy=policy, **{"from": day}).status_code == 303
        text = page_of(owner, path).text
        assert "A policy that counts people from one of the two counts each person once" in text
        assert "is counted twice. Choose which sources count" in text
        overview = f"/projects/{project}?{DAYS}"
        assert "both have views of people on 2 days" in Html(owner.get(overview).text).text


def test_policy_is_changed_from_a_day_on_and_shows_what_it_leaves_out(twice: Dashboard, owner: TestClient) -> None:
    day = NOON.date()
    changed = post(owner, f"{PATH}/policy", policy="beacon_people_log_machines", **{"from": str(day)})
    assert (changed.status_code, changed.headers["location"]) == (303, f"{PATH}?notice=policy#source-policy")
    assert source_policies.periods(twice.engine, PROJECT) == (Period(day, "beacon_people_log_machines"),)
    text = Html(owner.get(changed.headers["location"]).text).text
    assert "The source policy was changed." in text
    assert "beacon_people_log_machines ) since Sep 15, 2026 (UTC)." in text
    assert "All policies: at first Every source; from Sep 15, 2026 People from the website script" in text
    assert "is counted twice. Another policy" not in text


def test_policy_without_a_day_begins_with_the_source_that_it_prefers(twice: Dashboard, owner: TestClient) -> None:
    later, first = (NOON + DAY).date(), (NOON - DAY).date()
    assert post(owner, f"{PATH}/policy", policy="log_only", **{"from": str(later)}).status_code == 303
    assert post(owner, f"{PATH}/policy", policy="beacon_only", **{"from": ""}).status_code == 303
    assert source_policies.periods(twice.engine, PROJECT) == (Period(first, "beacon_only"),)
    assert "Website script only ( beacon_only ) since Sep 14, 2026 (UTC)." in page_of(owner).text
    assert "Begins with Sep 14, 2026, unless you choose a day." in page_of(owner).text
    assert post(owner, f"{PATH}/policy", policy="all").status_code == 303
    assert source_policies.periods(twice.engine, PROJECT) == ()


def test_views_that_a_policy_leaves_out_are_compared_with_the_script(twice: Dashboard, owner: TestClient) -> None:
    for first, views, sentence in (
        (NOON, 2, "The website script counted fewer views of people"),
        (NOON - DAY, 3, "The website script counted most of these views."),
    ):
        path, day = fill(twice, f"left-out-{views}"), str(first.date())
        assert post(owner, f"{path}/policy", policy="beacon_people_log_machines", **{"from": day}).status_code == 303
        text = page_of(owner, path).text
        assert f"{views} views of your server and access logs look like people and are not counted" in text
        assert sentence in text


def test_policy_of_a_later_day_is_listed_and_not_todays(twice: Dashboard, owner: TestClient) -> None:
    assert post(owner, f"{PATH}/policy", policy="log_only", **{"from": "2100-12-31"}).status_code == 303
    page = page_of(owner)
    assert "Every source ( all ) since the first day." in page.text
    assert "from Dec 31, 2100 Server and access logs only" in page.text


def test_wrong_policy_changes_nothing_and_is_named(twice: Dashboard, owner: TestClient) -> None:
    for policy, day, fault in (
        ("some", "", "Choose one of: all, beacon_only"),
        ("", "", "Choose one of: all, beacon_only"),
        ("log_only", "tomorrow", "Use a day from 2000-01-01 to 2100-12-31"),
        ("log_only", "1999-12-31", "Use a day from 2000-01-01 to 2100-12-31"),
        ("log_only", '"><script>alert(1)</script>', "Use at most 10 characters"),
    ):
        response = post(owner, f"{PATH}/policy", **({"policy": policy} if policy else {}), **{"from": day})
        assert response.status_code == 422
        assert fault in unescape(response.text)
        assert "<script>alert" not in response.text
    assert source_policies.periods(twice.engine, PROJECT) == ()


def test_viewer_sees_the_policy_and_no_form(twice: Dashboard) -> None:
    text = twice.visitor("viewer").get(PATH).text
    assert "An owner can change the policy." in text
    assert f'action="{PATH}/policy' not in text


@pytest.mark.long
def test_readers_that_a_policy_leaves_out_have_no_number(twice: Dashboard) -> None:
    left_out = f"by AI {UNKNOWN} left out by the source policy"
    policies: tuple[tuple[Policy, tuple[str, str], list[list[str]]], ...] = (
        ("beacon_only", ("by people 2", left_out), [["2", UNKNOWN], [UNKNOWN, UNKNOWN]]),
        ("beacon_people_log_machines", ("by people 2", "by AI 1"), [["2", UNKNOWN], [UNKNOWN, "1"]]),
        ("log_only", ("by people 3", "by AI 1"), [[UNKNOWN, UNKNOWN], ["3", "1"]]),
    )
    viewer = twice.visitor("viewer")
    for policy, totals, sources in policies:
        project = policy.replace("_", "-")
        fill(twice, project)
        source_policies.put(twice.engine, project, policy, date.min)
        page = Html(viewer.get(f"/projects/{project}?{DAYS}").text)
        assert all(each in page.text for each in totals)
        assert "views of people on" not in page.text
        rows = page.rows("Sources")[:2]
        assert [row[0] for row in rows] == ["Website script", "Your server"]
        assert [row[1:3] for row in rows] == sources
        ai = Html(viewer.get(f"/projects/{project}/ai?{DAYS}").text).text
        assert ("AI readers are not counted" in ai) == (policy == "beacon_only")
