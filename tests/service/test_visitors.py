"""A visitor is one number for all sources of a day, and leads to no address once the salt of the day is destroyed."""

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pytest

from ingest.visitors.salts import LIFE_S, open_salts
from ingest.visitors.visitor import Salt, digest, network
from tests.processes.running import PROJECT, Running, readership
from warehouse.folder import SALTS

ADDRESS, NEIGHBOUR = "9.9.9.171", "9.9.200.7"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SALT_BYTES = 32


def send(running: Running, *addresses: str, now: datetime) -> None:
    """Send a view of each address by each source."""
    log = ""
    for address in addresses:
        headers = {"X-Forwarded-For": address, "User-Agent": FIREFOX}
        assert httpx.post(running.hits, json={"path": "/beacon"}, headers=headers).status_code == 202
        pixel = running.hits.replace("hits", "pixel.gif?path=/pixel")
        assert httpx.get(pixel, headers=headers).status_code == 200
        hit = {"userAgent": FIREFOX, "address": address, "timestamp": now.isoformat()}
        many = [{**hit, "path": "/many"}] * 60
        few = [{**hit, "path": "/server"}, {"path": "/none", "userAgent": FIREFOX}]
        assert running.post(few).json()["accepted"] == len(few)
        assert running.post(many).json()["accepted"] == len(many)
        line = f'{address} - - [{now:%d/%b/%Y:%H:%M:%S} +0000] "GET /%s HTTP/1.1" 200 5 "-" "{FIREFOX}"\n'
        log += "".join(line % path for path in ("log", *(f"long{number}" for number in range(6_000 // len(addresses)))))
    assert running.run("import", PROJECT, "-", input=log, env={**os.environ, **running.environ}).returncode == 0


def visitors(data: Path) -> dict[str, set[int | None]]:
    """Return the visitors of each path; all paths of a long log are one."""
    by_path = defaultdict(set)
    sql = "SELECT DISTINCT regexp_replace(path, '[0-9]+', '') AS path, visitor FROM hits"
    for row in json.loads(readership("--data", str(data), "sql", sql, "--format", "json").stdout):
        by_path[row["path"]].add(row["visitor"])
    return by_path


def windows(folder: Path) -> Iterator[bytes]:
    """Yield each sequence of bytes in the files of a folder that can be a random salt: with few zeros."""
    seen = set[bytes]()
    for content in (path.read_bytes() for path in folder.rglob("*") if path.is_file()):
        zeros = np.concatenate([[0], np.cumsum(np.frombuffer(content, np.uint8) == 0)])
        for at in np.flatnonzero(zeros[SALT_BYTES:] - zeros[:-SALT_BYTES] < 4).tolist():
            if (window := content[at : at + SALT_BYTES]) not in seen:
                seen.add(window)
                yield window


def attack(folder: Path, stored: set[int]) -> set[str]:
    """Return the addresses of a /16 network that lead to a stored visitor under any key in the files of a folder.

    The user agent is known. A key is first tried with ADDRESS, which spares the other 65,535 for most keys.
    """
    suspect, found = network(ADDRESS) + digest(FIREFOX), set[str]()
    for key in windows(folder):
        salt = Salt(key)
        if salt.visitors(suspect, "log")[0] in stored:
            addresses = [f"9.9.{number >> 8}.{number & 255}" for number in range(1 << 16)]
            tried = salt.visitors(b"".join(network(each) + digest(FIREFOX) for each in addresses), "log")
            found |= {addresses[place] for place in np.flatnonzero(np.isin(tried, [*stored]))}
    return found


def sent(start: Callable[..., Running]) -> Running:
    """Return a service that got the views of two addresses. They wait in the hot log, or are in staged files."""
    for _ in range(2):
        running, now = start(READERSHIP_LOAD_EVERY_S="3600"), datetime.now(UTC)
        send(running, ADDRESS, NEIGHBOUR, now=now)
        if datetime.now(UTC).date() == now.date():
            return running
    pytest.fail("the day has changed twice")


@pytest.mark.long
def test_visitor_is_one_in_all_sources_and_leads_to_no_address_without_the_salt(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    running = sent(start)
    before = visitors(running.data)
    assert before["/none"] == {None}
    assert sorted(before) == ["/beacon", "/log", "/long", "/many", "/none", "/pixel", "/server"]
    assert len({frozenset(of) for path, of in before.items() if path != "/none"}) == 1
    stored = {each for of in before.values() for each in of if each is not None}
    assert len(stored) == len(before["/log"]) == 2
    running.kill()  # leaves the write-ahead logs as they are
    assert attack(running.data, stored) == {ADDRESS, NEIGHBOUR}
    salts = (running.data / SALTS).read_bytes()
    (running.data / SALTS).unlink()  # as in a backup
    assert attack(running.data, stored) == set()
    (running.data / SALTS).write_bytes(salts)
    with closing(open_salts("sqlite:///", running.data, now=lambda: time.time() + 86_400 + LIFE_S)):
        pass
    assert attack(running.data, stored) == set()
    assert attack(tmp_path, stored) == set()  # of which the log of the service is a part
    for command in ("compact", "reclassify"):
        assert running.run(command).returncode == 0
    assert visitors(running.data) == before


@pytest.mark.long
def test_no_view_has_a_visitor_if_visitors_are_off(start: Callable[..., Running]) -> None:
    running = start(READERSHIP_VISITORS="off")
    send(running, ADDRESS, now=datetime.now(UTC))
    assert {None} == {each for of in visitors(running.data).values() for each in of}
