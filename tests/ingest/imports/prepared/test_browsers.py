"""Evidence of readers in the log of a real nginx: a real Chromium, and scripts with its user agent."""

import getpass
import re
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode
from zlib import crc32

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from ingest.hits.row import Site as ProjectSite
from ingest.imports.importer import Options
from tests.ingest.imports.prepared.test_asset_loads import run_import
from tests.processes.chromium import launch
from tests.processes.ports import held_port
from tests.processes.waiting import killed_on_failure, until
from tests.programs import find
from tests.warehouse.site import DAY, ROOT, Site
from warehouse.columns.filters import Filters
from warehouse.report.results import Query

pytestmark = [pytest.mark.long, pytest.mark.needs("nginx"), pytest.mark.needs("curl")]
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
PAGE = (
    '<!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="/{folder}/style.css">'
    '<script src="/{folder}/app.js"></script><img src="/{folder}/photo.svg">'
    '<a href="/second.html">Read on</a>'
)
CONFIGURATION = """
user {user}; daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;
events {{}}
http {{
    access_log {folder}/access.log combined;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder};
    scgi_temp_path {folder};
    types {{ text/html html; text/css css; text/javascript js; image/svg+xml svg; }}
    set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;
    server {{
        listen 127.0.0.1:{port} reuseport; root {folder}/site;
        location / {{ add_header Cache-Control "no-cache"; }}
        location /cached/ {{ add_header Cache-Control "max-age=3600"; }}
        location /checked/ {{ add_header Cache-Control "no-cache"; }}
    }}
}}
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Serve pages whose assets a browser may use again for an hour (two pages), or only after it has asked.

    Without a header, a browser uses a page again for a tenth of its age, and a slow test has no second request.
    """
    for name, assets in (("cached", "cached"), ("second", "cached"), ("checked", "checked")):
        folder = tmp_path / "site" / assets
        folder.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / f"{name}.html").write_text(PAGE.format(folder=assets))
        for asset, text in (("style.css", "p {}"), ("app.js", ";"), ("photo.svg", "<svg/>")):
            (folder / asset).write_text(text)
    configuration, user = tmp_path / "nginx.conf", getpass.getuser()  # the folder is readable by this user alone
    with held_port() as port:
        configuration.write_text(CONFIGURATION.format(folder=tmp_path, port=port, user=user))
        with subprocess.Popen([find("nginx"), "-p", tmp_path, "-c", configuration]) as nginx, killed_on_failure(nginx):
            until((tmp_path / "pid").exists)
            yield f"http://127.0.0.1:{port}"
            nginx.terminate()


def browse(browser: Browser, name: str, *urls: str, has_script: bool = True, has_assets: bool = True) -> None:
    """Visit pages with one cache, the last one from the address of a reader, and the others from another address."""
    context = browser.new_context(user_agent=CHROME, java_script_enabled=has_script)
    if not has_assets:
        context.route("**/cached/*", lambda route: route.abort())
    page = context.new_page()
    for place, url in enumerate(urls, start=1):
        context.set_extra_http_headers(headers(name if place == len(urls) else f"before {name}"))
        page.goto(campaign(url, name) if place == len(urls) else url)
        if name.endswith("link"):
            time.sleep(1 - time.time() % 1)  # nginx logs whole seconds, and a link is followed later than it was read
            page.click("a")
            page.wait_for_url("**/second.html")
        page.goto("about:blank")
    context.close()


def campaign(url: str, name: str) -> str:
    return f"{url}?{urlencode({'utm_campaign': name})}"


def headers(name: str) -> dict[str, str]:
    """Return the header by which nginx logs the address of a reader."""
    return {"X-Forwarded-For": f"203.0.113.{crc32(name.encode()) % 250}"}


def documented() -> dict[str, str]:
    """Return the evidence of each reader that docs/data.md names."""
    rows = re.findall(r"^\| ([^|`]+) \| `(\w+)` \|$", (ROOT / "docs/data.md").read_text(), re.MULTILINE)
    return {name: evidence for name, evidence in rows if name != "reader"}


def test_evidence_of_browsers_and_scripts_is_as_documented(tmp_path: Path, url: str) -> None:
    cached, checked = f"{url}/cached.html", f"{url}/checked.html"
    with sync_playwright() as playwright:
        browser = launch(playwright)
        browse(browser, "first visit", cached)
        browse(browser, "first visit without JavaScript", cached, has_script=False)
        browse(browser, "return, and the cache asks whether its assets are new", checked, checked)
        browse(browser, "return, and the cache has all assets", cached, cached)
        browse(browser, "the same, then a link", cached, cached)
        browse(browser, "Playwright that loads pages alone", cached, has_assets=False)
        browser.close()
    curl = [f"{key}: {value}" for key, value in headers("curl").items()]
    subprocess.run([find("curl"), "-s", "-A", CHROME, "-H", *curl, campaign(cached, "curl")], check=True)
    httpx.get(campaign(cached, "httpx"), headers={"User-Agent": CHROME, **headers("httpx")})
    site = Site(tmp_path / "data")
    own = Options(site=ProjectSite(frozenset(["127.0.0.1"])))
    run_import(site, tuple((tmp_path / "access.log").read_bytes().splitlines()), now=time.time, options=own)
    reports, today = site.reports(), datetime.now(UTC)
    found = {}
    for name in documented():
        query = Query("site", today - DAY, today + DAY, Filters(utmCampaign=name), today + DAY)
        found[name] = reports.breakdown(reports.take(), query, "evidence", 0, 10).rows.to_pylist()
    assert {name: [row["value"] for row in rows] for name, rows in found.items()} == {
        name: [evidence] for name, evidence in documented().items()
    }
    site.close()
