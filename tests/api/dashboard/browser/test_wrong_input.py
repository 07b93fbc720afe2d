"""Each form with wrong input in Chromium: the page shows the fault at its field, and has no violation of WCAG."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from api.dashboard.pages_table import PAGES
from api.dashboard.web.routes import Page
from ingest.hits.evidence import ACCEPT_CHARACTERS_MAX
from ingest.hits.hit import USER_AGENT_CHARACTERS_MAX
from tests.api.dashboard.browser.axe import violations
from tests.api.dashboard.browser.sample import ATTACK, Sample
from tests.api.dashboard.browser.visiting import Visit, visiting

LONG = "x" * 70_000
Values = dict[str, str]
FORMS: list[tuple[str, Values, int]] = [
    ("/sign-in", {"name": "x" * 101}, 422),
    ("/sign-in", {"password": ""}, 422),
    ("/welcome/{token}", {"new_password": "short"}, 422),
    ("/welcome/{token}", {"new_password": "correct horse", "repeated": "another one"}, 422),
    ("/account", {"new_password": "short"}, 422),
    ("/account", {"new_password": "correct horse", "repeated": "another one"}, 422),
    ("/projects", {"id": "Not An Id"}, 422),
    ("/projects", {"id": ATTACK}, 422),
    ("/projects", {"id": "new", "origin": "not an origin"}, 422),
    ("/projects/{project}/ai/robots", {"robots": "no rule", "since": "2999-01-01T00:00"}, 422),
    ("/projects/{project}/why", {"userAgent": "x" * (USER_AGENT_CHARACTERS_MAX + 1)}, 400),
    ("/projects/{project}/why", {"accept": "x" * (ACCEPT_CHARACTERS_MAX + 1)}, 400),
    ("/projects/{project}/setup", {"origins": "not an origin"}, 422),
    ("/projects/{project}/setup", {"policy": "no policy"}, 422),
    ("/projects/{project}/setup", {"from": "1999-12-31"}, 422),
    ("/projects/{project}/keys", {"name": ""}, 422),
    ("/projects/{project}/keys", {"name": "report", "expires": "no time"}, 422),
    ("/projects/{project}/keys", {"name": "report", "expires": "date", "day": "2020-01-01"}, 422),
    ("/projects/{project}/jobs", {"prompt": LONG}, 422),
    ("/projects/{project}/jobs/{job}", {"prompt": ""}, 422),
    ("/projects/{project}/goals", {"name": "order", "value": "/a", "kind": "no kind"}, 422),
    ("/projects/{project}/share", {"name": ""}, 422),
    ("/projects/{project}/share", {"name": "press", "pages": "no pages"}, 422),
    ("/projects/{project}/share", {"name": "press", "first": "/cost"}, 422),
]
"""Path of the page of each form, the values of its fields, of which the last one is wrong, and the status."""
TESTED = {(path, name) for path, values, _ in FORMS for name in values} | {("/projects/{project}/keys", "scope")}
"""Page and name of each field of FORMS, and of a choice among radio buttons, which has no other value."""
SUBMIT = """values => {
    const fields = Object.keys(values).map(name => document.querySelector(`main form [name="${name}"]`));
    for (const field of fields) {
        // A list of choices has no other value by itself.
        if (field.options) field.add(new Option("wrong", values[field.name]));
        field.value = values[field.name];
    }
    fields[0].form.submit();  // without the checks of the browser
}"""


@pytest.fixture(scope="module")
def visit(browser: Browser, filled: Sample) -> Iterator[Visit]:
    with visiting(browser, filled.url, None) as visit:
        yield visit


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "values", "status"), FORMS, ids=[f"{path} {[*values][-1]}" for path, values, _ in FORMS]
)
def test_fault_is_at_its_field(visit: Visit, filled: Sample, path: str, values: Values, status: int) -> None:
    visit.become(filled.session_for(page_at(path)))
    visit.open(filled.address(page_at(path)))
    with visit.page.expect_navigation() as navigation:
        visit.page.evaluate(SUBMIT, values)
    assert navigation.value.status == status
    faulty = visit.page.locator(f'main form [name="{[*values][-1]}"][aria-invalid="true"]')
    assert faulty.count() == 1
    described = visit.page.locator(f"#{faulty.get_attribute('aria-describedby')}")
    assert described.is_visible()
    assert len(described.inner_text()) > 10
    assert violations(visit.page) == []
    assert visit.page.evaluate("window.attacked") is None


def page_at(path: str) -> Page:
    return next(each for each in PAGES if (each.method, each.path) == ("GET", path))
