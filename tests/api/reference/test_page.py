"""The HTML page of the reference: complete, safe, and with commands that work."""

import base64
import hashlib
import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from api.app import OPERATIONS
from api.http.operation import ADDRESS
from api.http.problems import KINDS
from api.reference import prose
from api.reference.openapi import description
from api.reference.reference import PAGES_MAX, Reference
from tests.processes.running import Running, new_job, new_key

PROJECT = "reference"


class Page(HTMLParser):
    """The ids, links, tags and text of a page, and the URLs that a browser would fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.fetched: list[str] = []
        self.text = ""
        self.style = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []
        self.fetched += [
            value for name, value in attributes.items() if name in {"src", "srcset", "data", "action", "style"}
        ]
        self.fetched += [attributes["href"]] if tag != "a" and "href" in attributes else []

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "style":
            self.style += data
        self.text += data


@pytest.fixture(scope="module")
def response(service: Running) -> httpx.Response:
    return httpx.get(f"{service.url}/docs")


@pytest.fixture(scope="module")
def page(response: httpx.Response) -> Page:
    assert response.status_code == 200
    return Page(response.text)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_problem_has_a_section(page: Page, kind: str) -> None:
    assert kind in page.ids


def test_each_operation_has_a_section(page: Page) -> None:
    assert {each.id for each in OPERATIONS} <= set(page.ids)


def test_each_link_within_the_page_has_a_target(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links if link.startswith("#")} <= set(page.ids)
    assert {link for link in page.links if not link.startswith("#")} == {"openapi.json"}


def test_page_fetches_nothing_and_runs_no_script(page: Page, response: httpx.Response) -> None:
    assert page.fetched == []
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form"})
    assert "url(" not in page.style
    assert "@import" not in page.style
    assert response.headers["content-security-policy"].startswith("default-src 'none';")


def test_content_security_policy_allows_the_style_of_the_page(page: Page, response: httpx.Response) -> None:
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in response.headers["content-security-policy"]


def test_markup_in_a_description_is_escaped(page: Page, service: Running) -> None:
    assert f'<script defer src="{service.url}/beacon.js"' in page.text


def test_samples_use_the_address_of_the_request(page: Page, service: Running) -> None:
    assert f"curl {service.url}/healthz" in page.text
    assert ADDRESS not in page.text


@pytest.mark.parametrize("host", ["a$(id)", 'a"><script>', "a;id", "a" * 301])
def test_host_header_with_shell_or_html_characters_or_a_long_one_is_not_in_the_samples(
    service: Running, host: str
) -> None:
    text = httpx.get(f"{service.url}/docs", headers={"Host": host}).text
    assert host not in text
    assert re.search(r"curl http://127\.0\.0\.1:\d+/healthz", text)


def test_page_is_rendered_once_for_each_of_the_last_addresses() -> None:
    reference = Reference(OPERATIONS)
    pages = [reference.html(f"https://{number}.example") for number in range(PAGES_MAX + 1)]
    assert all(f"https://{number}.example/healthz".encode() in page for number, page in enumerate(pages))
    assert reference.html("https://1.example") is pages[1]
    assert reference.html("https://0.example") is not pages[0]
    assert reference.html("https://0.example") == pages[0]


def test_document_is_served_as_json(service: Running) -> None:
    response = httpx.get(f"{service.url}/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == json.loads(json.dumps(description(OPERATIONS)))


@pytest.mark.needs("curl")
@pytest.mark.parametrize(
    ("operation", "sample"), [(each.id, sample) for each in OPERATIONS for sample in prose.of(each.id).samples.values()]
)
def test_samples_work_when_pasted(service: Running, tmp_path: Path, operation: str, sample: str) -> None:
    key = new_key(service.data, PROJECT)
    (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    command = re.sub("/(analytics|agent)/demo/", rf"/\1/{PROJECT}/", sample.replace(ADDRESS, service.url))
    job = new_job(service.data, PROJECT)
    if operation == "archiveJob":
        httpx.post(f"{service.url}/v2/agent/{PROJECT}/job/{job}/cancel", headers={"Authorization": f"Bearer {key}"})
    environ = {**os.environ, "KEY": key, "JOB": job, "CURL_HOME": str(tmp_path)}
    completed = subprocess.run(["sh", "-c", command], env=environ, cwd=tmp_path, capture_output=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert (b'"rejected":[]' in completed.stdout) is (operation == "sendHits")
