"""Which readers load assets, in the log of a real nginx: a real Chromium, and scripts with its user agent."""

import getpass
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.ingest.imports.prepared.test_asset_loads import run_import, stored
from tests.processes.chromium import launch
from tests.processes.ports import held_port
from tests.programs import find
from tests.warehouse.site import Site
from warehouse.tables import HITS_TABLE

pytestmark = [pytest.mark.long, pytest.mark.needs("nginx"), pytest.mark.needs("curl")]
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
PAGE = (
    '<!doctype html><link rel="icon" href="data:,"><link rel="stylesheet" href="/{folder}/style.css">'
    '<script src="/{folder}/app.js"></script><img src="/{folder}/photo.svg">'
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
        location /cached/ {{ add_header Cache-Control "max-age=3600"; }}
        location /checked/ {{ add_header Cache-Control "no-cache"; }}
    }}
}}
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Serve two pages, whose assets a browser may use again for an hour, or only after it has asked."""
    for name in ("cached", "checked"):
        folder = tmp_path / "site" / name
        folder.mkdir(parents=True)
        (tmp_path / "site" / f"{name}.html").write_text(PAGE.format(folder=name))
        for asset, text in (("style.css", "p {}"), ("app.js", ";"), ("photo.svg", "<svg/>")):
            (folder / asset).write_text(text)
    configuration, user = tmp_path / "nginx.conf", getpass.getuser()  # the folder is readable by this user alone
    with held_port() as port:
        configuration.write_text(CONFIGURATION.format(folder=tmp_path, port=port, user=user))
        with subprocess.Popen([find("nginx"), "-p", tmp_path, "-c", configuration]) as nginx:
            while not (tmp_path / "pid").exists():
                time.sleep(0.01)
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
        page.goto(f"{url}?utm_source={name}" if place == len(urls) else url)
        page.goto("about:blank")
    context.close()


def headers(name: str) -> dict[str, str]:
    """Return the header by which nginx logs the address of a reader."""
    return {"X-Forwarded-For": f"203.0.113.{crc32(name.encode()) % 250}"}


def test_browser_is_confirmed_unless_its_whole_cache_is_fresh_and_a_script_is_not(tmp_path: Path, url: str) -> None:
    cached, checked = f"{url}/cached.html", f"{url}/checked.html"
    with sync_playwright() as playwright:
        browser = launch(playwright)
        browse(browser, "first", cached)
        browse(browser, "javascript-off", cached, has_script=False)
        browse(browser, "revalidated", checked, checked)
        browse(browser, "full-cache", cached, cached)
        browse(browser, "no-assets", cached, has_assets=False)
        browser.close()
    curl = [f"{key}: {value}" for key, value in headers("curl").items()]
    subprocess.run([find("curl"), "-s", "-A", CHROME, "-H", *curl, f"{cached}?utm_source=curl"], check=True)
    httpx.get(f"{cached}?utm_source=httpx", headers={"User-Agent": CHROME, **headers("httpx")})
    site = Site(tmp_path / "data")
    run_import(site, tuple((tmp_path / "access.log").read_bytes().splitlines()), now=time.time)
    loads = stored(site)
    views = {row["utm_source"]: row for row in site.stored(HITS_TABLE) if row["utm_source"]}
    assert {row["traffic"] for row in views.values()} == {"human"}
    assert {name: (row["date"], row["visitor"]) in loads for name, row in views.items()} == {
        "first": True,
        "javascript-off": True,
        "revalidated": True,
        "full-cache": False,  # what assets cannot show
        "no-assets": False,
        "curl": False,
        "httpx": False,
    }
    site.close()
