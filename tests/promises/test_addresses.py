"""The addresses of visitors are used to verify agents, and are in no file that the service writes."""

import os
from pathlib import Path

import httpx

from api import data_folder, settings
from ingest.verification.address_lists import shipped
from tests.ingest.hotlog.guessing import ADDRESSES, guess, stored
from tests.processes.running import Running

INSIDE = shipped()["openai-gptbot"].prefixes[0].partition("/")[0]
POSTED, POSTED_V6, FORWARDED, LOGGED = "9.9.9.171", "2620:fe:71::71", "9.9.9.172", "9.9.9.173"
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"
HITS = [
    {"path": "/posted", "userAgent": GPTBOT, "address": POSTED, "accept": "text/secret-accept", "eventId": "posted"},
    {"path": "/v6", "userAgent": GPTBOT, "address": POSTED_V6, "headers": {"x-note": "secret-header"}},
    {"path": "/inside", "userAgent": GPTBOT, "address": INSIDE},
    {"path": "/invalid", "userAgent": GPTBOT, "address": f"{POSTED}:80"},
]
GUESSED = '{{"path": "/guessed", "userAgent": "GPTBot/1.3", "address": "{}"}}'
"""Body of a post whose address is guessed."""
JSON = {"Content-Type": "application/json", "Idempotency-Key": "guessed"}
LINES = 6_000
"""Number of lines of the log: more than the rows of a chunk that goes through the hot log."""


def guesses(folder: Path) -> list[str]:
    """Return the addresses that can be found with all files by trying all of a network."""
    sequences, secret = stored(folder), data_folder.secret(settings.read({}, folder / "data"))
    return [
        each
        for text in (str, GUESSED.format)
        for each in guess(sequences, lambda address: text(address).encode(), secret)  # noqa: B023  # called now
    ]


def read_all(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_no_file_has_the_address_of_a_visitor_and_agents_are_verified_by_it(tmp_path: Path) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    running = Running(tmp_path / "data", environ={"TMPDIR": str(temp), "READERSHIP_LOAD_EVERY_S": "3600"}).start()
    try:
        assert running.post(HITS).json()["accepted"] == 3
        body = GUESSED.format(ADDRESSES[171])
        assert httpx.post(running.hits, content=body, headers={**running.auth, **JSON}).json()["accepted"] == 1
        headers = {"X-Forwarded-For": FORWARDED, "User-Agent": GPTBOT}
        assert httpx.post(running.hits, json={"path": "/beacon"}, headers=headers).status_code == 202
        pixel = running.hits.replace("hits", "pixel.gif?path=/pixel")
        assert httpx.get(pixel, headers=headers).status_code == 200
        waiting, guessed = read_all(tmp_path), guesses(tmp_path)
        log = "".join(
            f'{LOGGED} - - [20/Nov/2026:12:00:{number % 60:02} +0000] "GET /{number} HTTP/1.1" 200 5 "-" "{GPTBOT}"\n'
            for number in range(LINES)
        )
        assert running.run("import", "site", "-", input=log, env={**os.environ, **running.environ}).returncode == 0
        assert running.run("project", "policy", "site", "log_only").returncode == 0
        by_verification = httpx.get(
            running.hits.replace("hits", "breakdown?by=verification"), headers=running.auth
        ).json()["rows"]
    finally:
        assert running.stop() == 0
    assert running.run("compact").returncode == 0
    # Parquet files are compressed: their bytes alone would not show an address.
    rows = "".join(
        running.run("sql", f"FROM {view}", "--format", "ndjson").stdout for view in ("hits", "daily_views", "errors")
    )
    assert rows.count("\n") > LINES
    for content in (waiting, read_all(tmp_path), rows.encode()):
        assert b"/posted" in content
        for text in (POSTED, POSTED_V6, FORWARDED, LOGGED, "secret-accept", "secret-header"):
            assert text.encode() not in content, text
    views = {row["value"]: row["ai"] + row["bot"] for row in by_verification}
    assert guessed == guesses(tmp_path) == []
    assert views["verified"] == 1
    assert sum(views.values()) == LINES + 4  # the beacon and the pixel do not count under the policy
    assert views.get("not_checked", 0) == 0
