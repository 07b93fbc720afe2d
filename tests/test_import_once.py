"""An import that is killed and run again counts each line once, with a service beside it or without."""

import csv
import gzip
import io
import json
import random
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.reading import daily_views, hits
from tests.running import COMMAND, PROJECT, Running, new_key, readership

KILLS = 30
KILLS_BESIDE_A_SERVICE = 10
LINES = 250_000
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)",
    "an \\\\x22odd\\\\x22 reader",
)
SEEN = re.compile(rb'"GET (/[a-z0-9]+) HTTP/1\.1" (?:200|304) ', re.MULTILINE)
"""A page view of these logs, without any part of the parser that is tested."""


def written(folder: Path, chance: random.Random) -> list[Path]:
    """Three logs of several stretches in all, one of them packed, and the newest rotated under the next name."""
    lines = []
    for number in range(LINES):
        target = f"/p{chance.randrange(500)}" if number % 10 else "/style.css"
        status = chance.choice((200, 200, 200, 304, 404))
        time = f"{1 + number % 28:02}/Sep/2026:{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} +0000"
        agent = AGENTS[number % 3 if number % 50 == 0 else number % 2]
        noise = "x" * 160
        lines.append(
            f'192.0.2.{number % 250} - - [{time}] "GET {target} HTTP/1.1" {status} {number} "-" "{agent}" "{noise}"\n'
        )
    cuts = (0, LINES // 10, LINES // 5, LINES)  # the last is of several stretches
    files = []
    for name, first, end in zip(("a.log.2.gz", "a.log.1", "a.log"), cuts, cuts[1:], strict=False):
        content = "".join(lines[first:end]).encode()
        (folder / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
        files.append(folder / name)
    (folder / "again.log").write_bytes("".join(lines[: cuts[1]]).encode())
    return [*files, folder / "again.log"]


def expected(files: list[Path]) -> Counter[str]:
    found: Counter[str] = Counter()
    for file in files[:-1]:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        found.update(path.decode() for path in SEEN.findall(content))
    return found


def killed_until_done(data: Path, files: list[Path], chance: random.Random, kills: int) -> int:
    """Run one import again and again; kill it at a random moment so many times, then let it end. How many were cut."""
    command = [COMMAND, "--data", str(data), "import", PROJECT, *map(str, files)]
    cut = 0
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(chance.uniform(0.3, 1.3))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            cut += 1
        else:
            assert process.returncode == 0
    ended = readership(*command[1:])
    assert ended.returncode == 0, ended.stderr
    again = json.loads(readership(*command[1:]).stdout)
    assert (again["lines"], again["page_views"]) == (0, 0)
    return cut


def exported(running: Running) -> Counter[str]:
    """By path; bots count in no export, and these logs have none."""
    answer = httpx.get(running.views, headers={**running.auth, "Accept": "text/csv"}, timeout=60)
    return Counter({row["path"]: int(row["total"]) for row in csv.DictReader(io.StringIO(answer.text))})


def test_thirty_kills_lose_and_repeat_no_line(tmp_path: Path) -> None:
    chance = random.Random(20260915)
    data = tmp_path / "data"
    new_key(data)
    files = written(tmp_path, chance)
    assert killed_until_done(data, files, chance, KILLS) >= KILLS // 3
    running = Running(data).start()
    seen = exported(running)
    assert running.stop() == 0
    assert hits(data) == daily_views(data) == seen == expected(files)
    assert readership("--data", str(data), "doctor").returncode == 0


def test_kills_beside_a_service_that_takes_posts_lose_and_repeat_nothing(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    chance = random.Random(20260916)
    running = start(READERSHIP_LOAD_EVERY_S="1")
    files = written(tmp_path, chance)
    stopping = threading.Event()
    posted: Counter[str] = Counter()

    def post() -> None:
        with httpx.Client(headers=running.auth, timeout=60) as client:
            while not stopping.wait(0.01):
                hit = {"path": f"/posted{posted.total() % 9}", "userAgent": AGENTS[1]}
                assert client.post(running.hits, json=hit).status_code == 202
                posted[hit["path"]] += 1

    sender = threading.Thread(target=post)
    sender.start()
    try:
        killed_until_done(running.data, files, chance, KILLS_BESIDE_A_SERVICE)
    finally:
        stopping.set()
        sender.join()
    seen = exported(running)
    assert running.stop() == 0
    assert hits(running.data) == daily_views(running.data) == seen == expected(files) + posted
    assert running.run("doctor").returncode == 0
