"""Generate an access log in any of some formats: people, AI agents and bots; about half of the lines are page views."""

import random
import re
import tomllib
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from itertools import count, islice
from pathlib import Path

from benchmarks.data.line_formats import FORMATS, Logged

TRAFFIC = Path(__file__).parents[2] / "sample_data" / "traffic.toml"
END = datetime(2026, 10, 1, tzinfo=UTC)
DAYS = 40
PATHS = 2_000
IPV4_ADDRESSES, IPV6_ADDRESSES = 45_000, 5_000
ADDRESSES = IPV4_ADDRESSES + IPV6_ADDRESSES
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


def write(file: Path, lines: int, user_agents: int, format: str = "combined", days: int = DAYS) -> None:
    """Write `lines` lines of the `days` days before END, with `user_agents` distinct user agents.

    Equal arguments write equal files; each format has the same requests.
    """
    written = FORMATS[format]
    chance = random.Random(1)
    agents = _user_agents(chance, user_agents)
    paths = [f"/docs/section-{n % 40}/page-{n}" for n in range(PATHS)]
    assets = [f"/assets/{n}/file-{n}.{ASSETS[n % len(ASSETS)]}" for n in range(PATHS)]
    addresses = _addresses(chance)
    first_at, step = END - timedelta(days=days), timedelta(days=days) / lines
    with file.open("w") as log:
        for first in range(0, lines, LINES_A_WRITE):
            log.writelines(
                written(_logged(chance, n, first_at + step * n, addresses, paths, assets, agents[n % user_agents]))
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


def _addresses(chance: random.Random) -> list[str]:
    """Return random addresses that clients on the Internet can have."""
    ipv4 = (IPv4Address(chance.getrandbits(32)) for _ in count())
    ipv6 = (IPv6Address(0x2A << 120 | chance.getrandbits(120)) for _ in count())
    public = (each for each in ipv4 if each.is_global and not each.is_multicast)
    return [*map(str, islice(public, IPV4_ADDRESSES)), *map(str, islice(ipv6, IPV6_ADDRESSES))]


def _user_agents(chance: random.Random, number: int) -> list[str]:
    """Return the user agents of the sample data, and variants of them with other numbers, in random order."""
    known = [row["user_agent"] for row in tomllib.loads(TRAFFIC.read_text())["readers"]]
    distinct = dict.fromkeys(known[:number])
    while len(distinct) < number:
        distinct[_NUMBER.sub(lambda found: str(chance.randrange(int(found[0]) + 100)), chance.choice(known))] = None
    agents = list(distinct)
    chance.shuffle(agents)
    return agents
