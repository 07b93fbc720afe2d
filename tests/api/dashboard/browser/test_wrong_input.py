"""Each form with wrong input in Chromium: the page shows the fault at its field, and has no violation of WCAG."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from api.dashboard.pages_table import PAGES
from tests.api.dashboard.browser.axe import violations
from tests.api.dashboard.browser.sample import Sample
from tests.api.dashboard.browser.visiting import Visit, visiting

LONG = "x" * 70_000
FORMS = [
    ("/sign-in", "password", ""),
    ("/welcome/{token}", "new_password", "short"),
    ("/account", "new_password", "short"),
    ("/projects", "id", "Not An Id"),
    ("/projects/{project}/setup", "origins", "not an origin"),
    ("/projects/{project}/setup", "policy", "no policy"),
    ("/projects/{project}/keys", "name", ""),
    ("/projects/{project}/jobs", "prompt", LONG),
    ("/projects/{project}/jobs/{job}", "prompt", ""),
    ("/projects/{project}/share", "name", ""),
]
"""Path of the page of each form, the name of a field, and its wrong value."""
SUBMIT = """([name, value]) => {
    const field = document.querySelector(`main form [name="${name}"]`);
    field.value = value;
    field.form.submit();  // without the checks of the browser
}"""


@pytest.fixture(scope="module")
def visit(browser: Browser, filled: Sample) -> Iterator[Visit]:
    with visiting(browser, filled.url, None) as visit:
        yield visit


@pytest.mark.parametrize(("path", "field", "value"), FORMS, ids=[f"{path} {field}" for path, field, _ in FORMS])
def test_fault_is_at_its_field(visit: Visit, filled: Sample, path: str, field: str, value: str) -> None:
    page = next(each for each in PAGES if (each.method, each.path) == ("GET", path))
    visit.become(filled.session_for(page))
    visit.open(filled.address(page))
    with visit.page.expect_navigation() as navigation:
        visit.page.evaluate(SUBMIT, [field, value])
    assert navigation.value.status == 422
    faulty = visit.page.locator(f'main form [name="{field}"][aria-invalid="true"]')
    assert faulty.count() == 1
    described = visit.page.locator(f"#{faulty.get_attribute('aria-describedby')}")
    assert described.is_visible()
    assert len(described.inner_text()) > 10
    assert violations(visit.page) == []
