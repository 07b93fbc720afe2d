"""The pages of the reference: complete, safe, and with commands that work."""

import json
import os
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from api.app import OPERATIONS
from api.dashboard.pages.reference import PAGES
from api.http.operation import ADDRESS
from api.http.problems import KINDS
from api.reference import prose
from api.reference.openapi import description
from api.reports.records import REPORTS
from tests.processes.running import Running, new_job, new_key

PROJECT = "reference"


@pytest.fixture(scope="module")
def pages(service: Running) -> dict[str, str]:
    """Return the HTML of each page of the reference."""
    responses = {each.path: httpx.get(f"{service.url}{each.path}") for each in PAGES}
    assert {each.status_code for each in responses.values()} == {200}
    return {path: response.text for path, response in responses.items()}


def ids(html: str) -> list[str]:
    return re.findall(r' id="([^"]+)"', html)


def test_first_page_has_a_row_for_each_kind_of_problem(pages: dict[str, str]) -> None:
    assert {*KINDS} <= {*ids(pages["/docs"])}


def test_each_operation_has_a_section_on_one_page(pages: dict[str, str]) -> None:
    sections = [id for html in pages.values() for id in ids(html)]
    assert [sections.count(each.id) for each in OPERATIONS] == [1] * len(OPERATIONS)


def test_each_link_to_the_reference_has_a_target(pages: dict[str, str]) -> None:
    for path, html in pages.items():
        assert len({*ids(html)}) == len(ids(html))
        for link in re.findall(r'href="((?:/docs[^"#]*)?#[^"]+)"', html):
            target, _, anchor = link.partition("#")
            assert anchor in ids(pages[target or path]), f"{path}: {link}"


def test_parameters_and_fields_of_each_operation_are_on_its_page(pages: dict[str, str]) -> None:
    document = description(OPERATIONS)
    for each in OPERATIONS:
        html = next(html for html in pages.values() if each.id in ids(html))
        section = html.partition(f' id="{each.id}"')[2].partition("</section>")[0]
        described = document["paths"][each.path][each.method.lower()]
        for parameter in described["parameters"]:
            assert f"<code>{parameter['name']}</code>" in section
            assert str(prose.inline(parameter["description"])) in html
        assert [status for status in described["responses"] if f"<td>{status}</td>" not in section] == []
    types = re.findall('<td class="muted">([^<,]+)', "".join(pages.values()))
    assert {"string", "string or null", "integer or null"} <= {*types}


def test_page_of_reports_names_those_that_have_each_shared_text(pages: dict[str, str]) -> None:
    for file, names in {"_tables": [each.name for each in REPORTS], "_metrics": ["series", "breakdown"]}.items():
        text = str(prose.blocks(prose.rendered(f"{file}.md")))[:200]
        before = pages["/docs/read"].partition(text)[0].rpartition("<p")[2]
        assert re.findall("<code>(.+?)</code>", before) == names


def test_markup_in_a_description_is_escaped(pages: dict[str, str], service: Running) -> None:
    assert f"&lt;script defer src=&#34;{service.url}/beacon.js&#34;" in pages["/docs/send"]


def test_samples_use_the_address_of_the_request(pages: dict[str, str], service: Running) -> None:
    assert f"curl {service.url}/healthz" in pages["/docs/service"]
    assert [path for path, html in pages.items() if ADDRESS in html] == []


def test_host_with_shell_or_html_characters_or_a_long_one_is_not_in_the_samples(service: Running) -> None:
    for host in ("a$(id)", 'a"><script>', "a;id", "a" * 301):
        text = httpx.get(f"{service.url}/docs/service", headers={"Host": host}).text
        assert host not in text
        assert re.search(r"curl http://127\.0\.0\.1:\d+/healthz", text)


def test_document_is_served_as_json(service: Running) -> None:
    response = httpx.get(f"{service.url}/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == json.loads(json.dumps(description(OPERATIONS)))


@pytest.mark.needs("curl")
@pytest.mark.parametrize("operation", [each.id for each in OPERATIONS])
def test_samples_work_when_pasted(service: Running, tmp_path: Path, operation: str) -> None:
    key = new_key(service.data, PROJECT)
    (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    goals, headers = f"{service.url}/v1/projects/{PROJECT}/goals", {"Authorization": f"Bearer {key}"}
    for sample in prose.of(operation).samples.values():
        command = re.sub("/(analytics|agent|projects)/demo/", rf"/\1/{PROJECT}/", sample.replace(ADDRESS, service.url))
        environ = {**os.environ, "KEY": key, "CURL_HOME": str(tmp_path)}
        if "/job" in command:
            environ["JOB"] = new_job(service.data, PROJECT)
        if operation == "archiveJob":
            httpx.post(f"{service.url}/v2/agent/{PROJECT}/job/{environ['JOB']}/cancel", headers=headers)
        if operation == "removeGoal":
            removed = {"name": "Removed", "kind": "event", "value": "Removed"}
            environ["GOAL"] = httpx.post(goals, json=removed, headers=headers).json()["id"]
        completed = subprocess.run(["sh", "-c", command], env=environ, cwd=tmp_path, capture_output=True, check=False)
        assert completed.returncode == 0, completed.stderr
        assert (b'"rejected":[]' in completed.stdout) is (operation in ("sendHits", "sendEvents"))
