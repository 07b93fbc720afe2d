"""The scripts beacon.js and events.js over HTTP: size, compression and ETag."""

import gzip
import re
from pathlib import Path

import httpx

from api.routes import script
from api.routes.script import SCRIPTS
from tests.processes.running import Running


def test_script_is_small_and_any_page_may_load_it(service: Running) -> None:
    url = f"{service.url}/beacon.js"
    plain = httpx.get(url, headers={"Accept-Encoding": "identity"})
    assert plain.status_code == 200
    assert plain.headers["content-type"].partition(";")[0] in ("text/javascript", "application/javascript")
    assert "content-encoding" not in plain.headers
    assert b"data-project" in plain.content
    with httpx.stream("GET", url, headers={"Accept-Encoding": "gzip, br"}) as response:
        compressed = b"".join(response.iter_raw())
        assert response.headers["content-encoding"] == "gzip"
    assert len(compressed) < 1_500
    assert gzip.decompress(compressed) == plain.content
    assert "accept-encoding" in plain.headers["vary"].lower()
    assert plain.headers["cross-origin-resource-policy"] == "cross-origin"
    assert b"// " not in plain.content


def test_sources_have_nothing_that_changes_when_spaces_are_removed() -> None:
    for name in SCRIPTS:
        source = (Path(script.__file__).parent / name).read_text()
        code = re.sub(r"(?m)(?:^|\s+)// .*$", "", source)
        assert not re.search(r"\"|[-+]\s+[-+]|/\S*\[[^\]]* ", code), name
        assert code.count("// ") == 0


def test_page_of_any_origin_may_import_the_script_of_events(service: Running) -> None:
    response = httpx.get(f"{service.url}/events.js", headers={"Origin": "https://docs.example"})
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, "*")
    assert "export const watch=" in response.text


def test_script_that_the_browser_has_is_not_sent_again(service: Running) -> None:
    url = f"{service.url}/beacon.js"
    tag = httpx.get(url).headers["etag"]
    for etag in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        response = httpx.get(url, headers={"If-None-Match": etag})
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", tag)
    assert httpx.get(url, headers={"If-None-Match": '"other"'}).status_code == 200
