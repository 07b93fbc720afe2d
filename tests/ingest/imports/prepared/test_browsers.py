"""Evidence of readers in the log of a real nginx: real browsers with and without the website script, and scripts."""

import getpass
import hashlib
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode
from zlib import crc32

import httpx
import pytest
import requests
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.processes.chromium import ARGS, NOT_AUTOMATED, launch
from tests.processes.ports import held_port
from tests.processes.running import PROJECT, Running
from tests.processes.waiting import killed_on_failure, until
from tests.programs import INSTALL, find, skip
from tests.warehouse.site import ROOT

pytestmark = [pytest.mark.long, pytest.mark.needs("nginx"), pytest.mark.needs("curl")]
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
CHROME_OF_PROGRAM, CHROME_IN_READER_MODE = (CHROME.replace("140", version) for version in ("139", "138"))
"""User agents of readers for whom the test sets no header with an address."""
PAGE = (
    '<!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="/{folder}/style.css">'
    '<script src="/{folder}/app.js"></script><img src="/{folder}/photo.svg">'
    '<a href="/second.html">Read on</a>'
)
SCRIPT = '<script defer src="/beacon.js" data-project="site" data-local></script>'
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
        location ~ ^/(beacon.js|v1/) {{
            access_log off; proxy_pass {service}; proxy_set_header X-Forwarded-For $remote_addr;
        }}
    }}
}}
"""


@pytest.fixture
def service(start: Callable[..., Running]) -> Running:
    return start(READERSHIP_JOBS_AT_ONCE="0")


@pytest.fixture
def url(tmp_path: Path, service: Running) -> Iterator[str]:
    """Serve pages whose assets a browser may use again for an hour (two pages), or only after it has asked.

    Without a header, a browser uses a page again for a tenth of its age, and a slow test has no second request.
    """
    for name, assets in {"cached": "cached", "second": "cached", "checked": "checked", "script": "cached"}.items():
        folder = tmp_path / "site" / assets
        folder.mkdir(parents=True, exist_ok=True)
        script = SCRIPT if name == "script" else ""
        (tmp_path / "site" / f"{name}.html").write_text(PAGE.format(folder=assets) + script)
        for asset, text in (("style.css", "p {}"), ("app.js", ";"), ("photo.svg", "<svg/>")):
            (folder / asset).write_text(text)
    configuration, user = tmp_path / "nginx.conf", getpass.getuser()  # the folder is readable by this user alone
    with held_port() as port:
        configuration.write_text(CONFIGURATION.format(folder=tmp_path, port=port, user=user, service=service.url))
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


def read_in_reader_mode(playwright: Playwright, log: Path, url: str) -> None:
    """Open Chromium's reader mode, which loads the page in the background, and wait until the log has its last file."""
    program = shutil.which("chromium") or skip("chromium", f"{INSTALL} chromium")  # its shell has no reader mode
    options = [*ARGS, "--enable-dom-distiller", f"--user-agent={CHROME_IN_READER_MODE}"]
    browser = playwright.chromium.launch(executable_path=program, args=options)
    host = f"{uuid.uuid4()}_{hashlib.sha256(url.encode()).hexdigest()}"
    reader = f"chrome-distiller://{host}/?{urlencode({'time': 1, 'url': url})}"
    browser.new_browser_cdp_session().send("Target.createTarget", {"url": reader})
    until(lambda: re.search(rf"photo\.svg.*{re.escape(CHROME_IN_READER_MODE)}", log.read_text()))
    browser.close()


def run_chromium(profile: Path, url: str) -> None:
    """Print a page with Chromium as a program."""
    options = [*ARGS, "--headless", f"--user-data-dir={profile}", f"--user-agent={CHROME_OF_PROGRAM}", "--dump-dom"]
    subprocess.run([find("chromium"), *options, url], check=True, capture_output=True)


def campaign(url: str, name: str) -> str:
    return f"{url}?{urlencode({'utm_campaign': name})}"


def headers(name: str) -> dict[str, str]:
    """Return the header by which nginx logs the address of a reader."""
    return {"X-Forwarded-For": f"203.0.113.{crc32(name.encode()) % 250}"}


def documented() -> dict[str, str]:
    """Return the evidence of each reader that docs/data.md names."""
    rows = re.findall(r"^\| ([^|`]+) \| `(\w+)` \|$", (ROOT / "docs/data.md").read_text(), re.MULTILINE)
    return {name: evidence for name, evidence in rows if name != "reader"}


def test_evidence_of_browsers_and_scripts_is_as_documented(tmp_path: Path, url: str, service: Running) -> None:
    cached, checked, script, log = (
        f"{url}/cached.html",
        f"{url}/checked.html",
        f"{url}/script.html",
        tmp_path / "access.log",
    )
    with sync_playwright() as playwright:
        browser = launch(playwright)
        browse(browser, "first visit", cached)
        browse(browser, "first visit without JavaScript", cached, has_script=False)
        browse(browser, "return, and the cache asks whether its assets are new", checked, checked)
        browse(browser, "return, and the cache has all assets", cached, cached)
        browse(browser, "the same, then a link", cached, cached)
        browse(browser, "Playwright that loads pages alone", cached, has_assets=False)
        browse(browser, "Playwright, on a page with the website script", script)
        browser.close()
        browser = launch(playwright, NOT_AUTOMATED)
        browse(browser, "the same, on a page with the website script", script, script)
        browser.close()
        read_in_reader_mode(playwright, log, campaign(cached, "reader mode of Chromium"))
    run_chromium(tmp_path / "profile", campaign(cached, "headless Chromium as a program"))
    curl = [f"{key}: {value}" for key, value in headers("curl").items()]
    subprocess.run([find("curl"), "-s", "-A", CHROME, "-H", *curl, campaign(cached, "curl")], check=True)
    for library in (httpx, requests):
        name = library.__name__
        library.get(campaign(cached, name), headers={"User-Agent": CHROME, **headers(name)}, timeout=60)
    own = service.run("project", "origins", PROJECT, url)
    assert own.returncode == 0, own.stderr
    done = service.run("import", PROJECT, str(log), env={**os.environ, **service.environ})
    assert done.returncode == 0, done.stderr
    found = {}
    for name in documented():
        asked = {"by": "evidence", "utmCampaign": name}
        breakdown = service.views.replace("views", "breakdown")
        rows = httpx.get(breakdown, params=asked, headers=service.auth, timeout=60).json()["rows"]
        found[name] = [row["value"] for row in rows]
    assert found == {name: [evidence] for name, evidence in documented().items()}
