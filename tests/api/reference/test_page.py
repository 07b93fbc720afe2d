"""The page for people: whole, safe, and every command on it works."""

import base64
import hashlib
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from api.http.problems import KINDS
from api.reference.page import DOCUMENT
from api.reference.samples import ADDRESS, SAMPLES
from tests.running import Running, new_job, new_key

PROJECT = "reference"


class Page(HTMLParser):
    """The ids, links, tags and text of a page, and whatever in it would be fetched."""

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
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.fetched += [value for name, value in given.items() if name in {"src", "srcset", "data", "action", "style"}]
        self.fetched += [given["href"]] if tag != "a" and "href" in given else []

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "style":
            self.style += data
        self.text += data


@pytest.fixture(scope="module")
def answer(service: Running) -> httpx.Response:
    return httpx.get(f"{service.url}/docs")


@pytest.fixture(scope="module")
def page(answer: httpx.Response) -> Page:
    assert answer.status_code == 200
    return Page(answer.text)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_problem_has_its_section(page: Page, kind: str) -> None:
    assert kind in page.ids


def test_each_operation_has_its_section_and_a_sample(page: Page) -> None:
    ids = {each["operationId"] for methods in DOCUMENT["paths"].values() for each in methods.values()}
    assert ids <= set(page.ids)
    assert ids == set(SAMPLES)


def test_each_link_within_the_page_leads_somewhere(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links if link.startswith("#")} <= set(page.ids)
    assert {link for link in page.links if not link.startswith("#")} == {"openapi.json"}


def test_it_fetches_nothing_and_runs_nothing(page: Page, answer: httpx.Response) -> None:
    assert page.fetched == []
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form"})
    assert "url(" not in page.style
    assert "@import" not in page.style
    assert answer.headers["content-security-policy"].startswith("default-src 'none';")


def test_its_policy_lets_its_own_style_in(page: Page, answer: httpx.Response) -> None:
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]


def test_what_looks_like_markup_is_shown_as_text(page: Page, service: Running) -> None:
    assert f'<script defer src="{service.url}/beacon.js"' in page.text


def test_samples_send_to_the_address_at_which_the_page_is_read(page: Page, service: Running) -> None:
    assert f"curl {service.url}/healthz" in page.text
    assert ADDRESS not in page.text


@pytest.mark.parametrize("host", ["a$(id)", 'a"><script>', "a;id"])
def test_a_host_that_is_no_host_stays_out_of_the_samples(service: Running, host: str) -> None:
    text = httpx.get(f"{service.url}/docs", headers={"Host": host}).text
    assert host not in text
    assert re.search(r"curl http://127\.0\.0\.1:\d+/healthz", text)


def test_the_description_is_served_as_it_is(service: Running) -> None:
    answer = httpx.get(f"{service.url}/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == DOCUMENT


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("operation", "sample"), [(id, each) for id in SAMPLES for each in SAMPLES[id].values()])
def test_samples_work_as_they_stand(service: Running, tmp_path: Path, operation: str, sample: str) -> None:
    key = new_key(service.data, PROJECT)
    (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    command = re.sub("/(analytics|agent)/demo/", rf"/\1/{PROJECT}/", sample.replace(ADDRESS, service.url))
    job = new_job(service.data, PROJECT)
    if operation == "archiveJob":
        httpx.post(f"{service.url}/v2/agent/{PROJECT}/job/{job}/cancel", headers={"Authorization": f"Bearer {key}"})
    environ = {**os.environ, "KEY": key, "JOB": job, "CURL_HOME": str(tmp_path)}
    done = subprocess.run(["sh", "-c", command], env=environ, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (b'"rejected":[]' in done.stdout) is (operation == "sendHits")


def test_the_root_leads_to_the_reference(service: Running) -> None:
    answer = httpx.get(f"{service.url}/")
    assert answer.status_code == 307
    shown = httpx.get(f"{service.url}/", follow_redirects=True)
    assert (shown.status_code, str(shown.url)) == (200, f"{service.url}/docs")
    assert shown.headers["content-type"].startswith("text/html")


def test_the_root_leads_to_the_reference_behind_the_prefix_of_a_proxy(service: Running) -> None:
    """A proxy that removes `/stats/` from the path gives the browser the answer's Location as it is."""
    location = httpx.get(f"{service.url}/").headers["location"]
    assert urljoin("https://example.com/stats/", location) == "https://example.com/stats/docs"
