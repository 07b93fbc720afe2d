"""The links and forms of each page lead to pages that exist. Their targets are requested without a browser."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

from api.dashboard.pages_table import PAGES
from api.dashboard.web.routes import Page
from tests.api.dashboard.browser.sample import Sample
from tests.api.dashboard.browser.test_every_page import EACH_PAGE

Tag = tuple[str, dict[str, str | None]]
CHOICES = {"sort", "show", "period", "by", "traffic"}
"""Parameters with a few known values: a link with another value is another kind of link."""
FORMS = [re.compile(re.sub(r"\{\w+\}", "[^/]+", page.path)) for page in PAGES if page.method == "POST"]


class Tags(HTMLParser):
    """The start tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[Tag] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def seen() -> set[tuple[str, ...]]:
    """Return the kind of each link that a test of this module has requested."""
    return set()


@pytest.mark.long
@EACH_PAGE
def test_links_and_forms_lead_to_pages(filled: Sample, page: Page, seen: set[tuple[str, ...]]) -> None:
    """Request one link of each kind."""
    session = filled.session_for(page)
    cookies = {} if session is None else {"readership_session": session}
    with httpx.Client(base_url=filled.url, cookies=cookies, follow_redirects=True, timeout=60) as client:
        response = client.get(filled.address(page))
        tags = Tags(response.text).tags
        for link in sorted(set(links(tags, str(response.url), filled.url))):
            if kind(link) not in seen:
                seen.add(kind(link))
                assert client.get(link).status_code == 200, link
        for action in actions(tags, str(response.url)):
            assert any(form.fullmatch(urlsplit(action).path) for form in FORMS), action


def kind(link: str) -> tuple[str, ...]:
    """Return the path of a link, the names of its parameters, and the values of CHOICES."""
    address = urlsplit(link)
    parameters = parse_qs(address.query)
    return address.path, *sorted(f"{name}={values if name in CHOICES else ''}" for name, values in parameters.items())


def links(tags: list[Tag], page: str, service: str) -> Iterator[str]:
    """Yield the addresses of the links to the same service, without their fragments."""
    for tag, attributes in tags:
        if tag == "a" and (href := attributes.get("href")):
            address = urljoin(page, href).partition("#")[0]
            if address.startswith(service):
                yield address


def actions(tags: list[Tag], page: str) -> Iterator[str]:
    """Yield the addresses to which forms are posted."""
    for tag, attributes in tags:
        if tag == "form" and attributes.get("method") == "post":
            yield urljoin(page, attributes.get("action") or page)
