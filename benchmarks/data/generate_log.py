"""Generate an access log in any of some formats: one month of people, AI agents and bots; about half are page views."""

import random
import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.data.line_formats import FORMATS, Logged

TRAFFIC = Path(__file__).parents[2] / "sample_data" / "traffic.toml"
FIRST = datetime(2026, 9, 1, tzinfo=UTC)
DAYS = 30
PATHS = 2_000
ADDRESSES = 20_000
LINES_A_WRITE = 10_000
ASSETS = ("css", "js", "png", "woff2", "svg", "jpg")
REFERRERS = (
    "-",
    "-",
    "-",
    "https://www.google.com/",
    "https://chatgpt.com/",
    "https://example.com/docs/start?from=menu",
)
_NUMBER = re.compile(r"\d+")


def write(file: Path, lines: int, user_agents: int, format: str = "combined") -> None:
    """Write `lines` lines with `user_agents` distinct user agents.

    Equal arguments write equal files; each format has the same requests.
    """
    written = FORMATS[format]
    chance = random.Random(1)
    agents = _user_agents(chance, user_agents)
    paths = [f"/docs/section-{n % 40}/page-{n}" for n in range(PATHS)]
    assets = [f"/assets/{n}/file-{n}.{ASSETS[n % len(ASSETS)]}" for n in range(PATHS)]
    addresses = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in chance.sample(range(1 << 24), ADDRESSES)]
    step = timedelta(days=DAYS) / lines
    with file.open("w") as log:
        for first in range(0, lines, LINES_A_WRITE):
            log.writelines(
                written(_logged(chance, n, FIRST + step * n, addresses, paths, assets, agents[n % user_agents]))
                for n in range(first, min(first + LINES_A_WRITE, lines))
            )


def _logged(
    chance: random.Random,
    number: int,
    at: datetime,
    addresses: list[str],
    paths: list[str],
    assets: list[str],
    agent: str,
) -> Logged:
    kind = chance.random()
    chosen = paths if kind < 0.55 else assets
    target = chosen[int(PATHS * chance.random() ** 3)]
    if kind < 0.05:
        target += f"?page={int(kind * 10_000)}"
    method = "POST" if 0.53 < kind < 0.55 else "GET"
    status = 404 if 0.50 < kind < 0.53 else 200
    address, referrer = addresses[int(ADDRESSES * chance.random())], chance.choice(REFERRERS)
    return Logged(number, at, address, method, target, status, int(kind * 50_000), referrer, agent)


def _user_agents(chance: random.Random, count: int) -> list[str]:
    """Return the user agents of the sample data, and variants of them with other numbers, in random order."""
    known = [row["user_agent"] for row in tomllib.loads(TRAFFIC.read_text())["readers"]]
    distinct = dict.fromkeys(known[:count])
    while len(distinct) < count:
        distinct[_NUMBER.sub(lambda number: str(chance.randrange(int(number[0]) + 100)), chance.choice(known))] = None
    agents = list(distinct)
    chance.shuffle(agents)
    return agents
