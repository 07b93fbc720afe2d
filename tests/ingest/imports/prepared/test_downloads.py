"""An import stores the files that people and AI downloaded as events."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api.routes.script import SCRIPTS
from ingest.formats.page_filter import DOWNLOADS, Pages
from ingest.hits.event import BeaconEvent, ServerEvent, beacon_event, server_event
from ingest.hits.hit import microseconds
from ingest.imports import tail
from ingest.imports.importer import Import, Options
from ingest.visitors.salts import open_salts
from tests.ingest.formats.test_clf import FIREFOX, line
from tests.ingest.imports.prepared.test_asset_loads import GPTBOT, OTHER, READER, run_import
from tests.warehouse.site import DAY, NOON, SECRET, Site
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.tables import EVENTS_TABLE, HITS_TABLE

PERSON = {"user_agent": FIREFOX.encode(), **READER}
AGENT = {"user_agent": GPTBOT, **OTHER}
LOG = (
    line(b"GET /a HTTP/1.1", **PERSON),
    line(b"GET /set.zip?v=2 HTTP/1.1", **PERSON),
    line(b"GET /set.zip HTTP/1.1", **PERSON),  # again on the same day
    line(b"GET /set.zip HTTP/1.1", **PERSON, time=b"16/Sep/2026:00:00:00 +0000"),
    line(b"GET /set.zip HTTP/1.1", **AGENT),
    line(b"GET /Manual.PDF HTTP/1.1", **AGENT),  # also a page view
    line(b"GET /film.mp4 HTTP/1.1", **PERSON, status=b"206"),
    line(b"GET /film.mp4 HTTP/1.1", **PERSON, status=b"206"),
    line(b"GET /film.mp4 HTTP/1.1", status=b"206", host=b"unknown"),
    line(b"GET /other.zip HTTP/1.1", host=b"unknown"),
    line(b"GET /other.zip HTTP/1.1", host=b"unknown"),
    line(b"GET /old.zip HTTP/1.1", **PERSON, status=b"304"),
    line(b"GET /old.pdf HTTP/1.1", **PERSON, status=b"304"),
    line(b"GET /none.zip HTTP/1.1", **AGENT, status=b"404"),
    line(b"GET /none.pdf HTTP/1.1", **AGENT, status=b"404"),
    line(b"HEAD /set.zip HTTP/1.1", **AGENT),
    line(b"GET /bot.zip HTTP/1.1", **READER, user_agent=b"curl/8.0"),
    line(b"GET /robots.txt HTTP/1.1", **AGENT),
    line(b"GET /llms.txt HTTP/1.1", **AGENT),
    line(b"GET /sitemap.xml.gz HTTP/1.1", **AGENT),
    line(b"GET /private/a.zip HTTP/1.1", **PERSON),
)
OPTIONS = Options(pages=Pages(exclude=("/private/*",)))


def downloads(site: Site) -> list[tuple[Any, ...]]:
    rows = site.stored(EVENTS_TABLE)
    assert all((row["name"], row["source"], row["interactive"]) == ("File Download", "log", True) for row in rows)
    assert all(json.loads(row["props"]) == {"url": row["path"]} for row in rows)
    shown = ((row["path"], row["traffic"], row["agent"], row["date"].day, row["visitor"] is not None) for row in rows)
    return sorted(shown, key=str)


@pytest.mark.long
@pytest.mark.parametrize(("executor", "times"), [(None, 1), (None, 400), (THIS_PROCESS, 400)])
def test_downloads_of_people_and_ai_are_events(tmp_path: Path, executor: Executor | None, times: int) -> None:
    with closing(Site(tmp_path)) as site:
        summary = run_import(site, LOG * times, executor, options=OPTIONS)
        again = run_import(site, LOG * times, executor, options=OPTIONS)
        assert downloads(site) == sorted(
            [
                ("/Manual.PDF", "ai", "GPTBot", 15, True),
                ("/film.mp4", "human", None, 15, True),
                *[("/other.zip", "human", None, 15, False)] * 2 * times,
                ("/set.zip", "ai", "GPTBot", 15, True),
                ("/set.zip", "human", None, 15, True),
                ("/set.zip", "human", None, 16, True),
            ],
            key=str,
        )
        paths = {row["path"] for row in site.stored(HITS_TABLE)}
        assert paths == {"/a", "/Manual.PDF", "/old.pdf", "/llms.txt"}
        assert again.known == summary.lines == len(LOG) * times
        assert summary.skipped["not_a_page"] == 13 * times


FILES = {
    "/files/file[1].pdf": "/files/file%5B1%5D.pdf",
    "/files/a|b.pdf": "/files/a%7Cb.pdf",
    "/files/a%7eb.zip": "/files/a~b.zip",
    "/files/%c3%a9.zip": "/files/%C3%A9.zip",
    "/set.zip?v=2": "/set.zip",
}
"""Files as a browser requests them, and as they are counted."""


@pytest.mark.long
def test_file_has_the_same_url_from_a_log_and_from_a_script_or_server(tmp_path: Path) -> None:
    with closing(Site(tmp_path)) as site:
        run_import(site, tuple(line(f"GET {file} HTTP/1.1".encode(), **PERSON) for file in FILES))
        logged = {row["props"] for row in site.stored(EVENTS_TABLE)}
    assert logged == {json.dumps({"url": url}) for url in FILES.values()}
    assert {_posted("File Download", file) for file in FILES} == logged


@pytest.mark.parametrize(
    ("name", "url"),
    [("File Download", "http://other.test:1/a|b.zip"), ("File Download", "a|b.zip"), ("Saved", "/a|b/")],
)
def test_other_urls_are_stored_as_sent(name: str, url: str) -> None:
    assert _posted(name, url) == json.dumps({"url": url})


def test_path_of_a_file_that_is_longer_when_normalised_is_cut_to_the_limit_of_a_value() -> None:
    assert _posted("File Download", "/" + "|" * 1_999) == json.dumps({"url": "/" + "%7C" * 666})


def _posted(name: str, url: str) -> str:
    """Return the properties that are stored for the event of a script, and of a server."""
    fields: dict[str, Any] = {"name": name, "path": "/a", "props": {"url": url}}
    hits = beacon_event(BeaconEvent(**fields), FIREFOX, NOON), server_event(ServerEvent(**fields), microseconds(NOON))
    [props] = {hit.event and hit.event.props for hit in hits}
    assert props is not None
    return props


def test_parts_of_a_file_in_a_log_that_grows_count_once(tmp_path: Path) -> None:
    log, now, sizes = tmp_path / "access.log", (NOON + DAY).timestamp, [2, 1]
    with closing(Site(tmp_path)) as site, closing(open_salts("sqlite:///", tmp_path, now=now)) as salts:

        def grow(seconds: float) -> bool:
            if sizes and seconds == 0:
                with log.open("ab") as file:
                    file.write(b"\n".join([LOG[6]] * sizes.pop()) + b"\n")
            return bool(seconds) and not sizes

        log.touch()
        run = Import(site.hot, site.root, "site", SECRET, now, Options(is_growing=True), salts=salts)
        tail.follow(run, [str(log)], grow)
        site.load()
        assert run.summary.lines == 3
        assert len(downloads(site)) == 1


def test_script_names_the_same_files() -> None:
    pattern = SCRIPTS["events.js"].decode().split(r"\.(")[1].split(")$")[0]
    short = {"docx?": "doc docx", "mp[34]": "mp3 mp4", "pptx?": "ppt pptx", "xlsx?": "xls xlsx"}
    assert " ".join(short.get(each, each) for each in pattern.split("|")).split() == sorted(DOWNLOADS)
