"""An import counts all requests of a log, with the bytes and times that its format has."""

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.data import line_formats
from benchmarks.data.line_formats import Logged
from ingest.errors import LedgerIncomplete
from ingest.formats.page_filter import kind_of
from ingest.formats.request import Request
from ingest.hits.hit import cache_of
from ingest.imports.importer import DEFAULTS, Options, import_logs
from tests.ingest.formats import test_json_lines
from tests.ingest.formats.test_clf import line
from tests.warehouse.site import DAY, NOON, SECRET, TODAY, Site
from warehouse.columns.kinds import KINDS
from warehouse.requests import ms_below
from warehouse.tables import REQUESTS_TABLE

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"
NGINX = (
    '$remote_addr [$time_iso8601] "$request" $status $bytes_sent $request_time $upstream_cache_status'
    ' "$http_referer" "$http_user_agent"'
)
KIND_OF_PATHS = {
    "/": "page",
    "/docs/a": "page",
    "/docs/a.md": "markdown",
    "/robots.txt": "robots",
    "/sitemap.xml": "sitemap",
    "/de/sitemap-2.xml.gz": "sitemap",
    "/feed": "feed",
    "/blog/rss.xml": "feed",
    "/llms-full.txt": "llms",
    "/style.css": "asset",
    "/photo.jpg": "asset",
    "/api/users": "api",
    "/data/points.json": "api",
    "/favicon.ico": "other",
    "/file.zip": "other",
}


@dataclass(frozen=True)
class Format:
    """A format: its lines, and the bytes, ms and cache of a request that they have."""

    write: Callable[[Logged], str]
    size: Callable[[Logged], int | None] = lambda logged: logged.size_bytes
    ms: Callable[[Logged], float | None] = lambda logged: None
    cache: str | None = None
    head: str = ""
    log_format: str | None = None


def nginx(logged: Logged) -> str:
    return (
        f'{logged.address} [{logged.at:%Y-%m-%dT%H:%M:%S}+00:00] "{logged.method} {logged.target} HTTP/1.1"'
        f' {logged.status} {logged.size_bytes} {logged.number % 977 / 1_000:.3f} HIT "-" "{logged.user_agent}"\n'
    )


def cloudfront(logged: Logged) -> str:
    agent = logged.user_agent.replace(" ", "%20")
    fields = f"{logged.at:%Y-%m-%d\t%H:%M:%S}", logged.size_bytes, logged.method, logged.target, logged.status, agent
    return "\t".join(map(str, (*fields, f"{logged.number % 977 / 1_000:.3f}", "RefreshHit"))) + "\n"


FORMATS = {
    "combined": Format(line_formats.combined),
    "vhost-combined": Format(lambda logged: f"example.com:443 {line_formats.combined(logged)}"),
    "nginx": Format(nginx, ms=lambda logged: logged.number % 977, cache="hit", log_format=NGINX),
    "cloudfront": Format(
        cloudfront,
        ms=lambda logged: logged.number % 977,
        cache="hit",
        head="#Fields: date time sc-bytes cs-method cs-uri-stem sc-status cs(User-Agent) time-taken"
        " x-edge-result-type\n",
    ),
    "caddy": Format(line_formats.FORMATS["caddy"], ms=lambda logged: 0.929675 + logged.number % 977 / 1_000),
    "cloudflare": Format(line_formats.FORMATS["cloudflare"], lambda logged: logged.size_bytes + 700, cache="hit"),
    "vercel": Format(line_formats.FORMATS["vercel"], lambda logged: None, cache="hit"),
    "netlify": Format(line_formats.FORMATS["netlify"], lambda logged: None, lambda logged: logged.number % 90),
}


def requests(number: int, seed: int) -> Iterator[Logged]:
    chance = random.Random(seed)
    for each in range(0, 2 * number, 2):  # Vercel logs requests twice whose numbers are odd
        yield Logged(
            each,
            NOON - timedelta(hours=chance.randrange(40)),
            "203.0.113.7",
            chance.choice(["GET", "GET", "GET", "HEAD", "POST"]),
            chance.choice([*KIND_OF_PATHS]),
            chance.choice([200, 200, 206, 301, 304, 402, 403, 404, 429, 500]),
            chance.choice([0, 1, 512, 10**12]),
            "-",
            chance.choice([FIREFOX, GPTBOT, "curl/8.5"]),
        )


def expected(format: Format, asked: Iterable[Logged]) -> Counter[Any]:
    """Return the requests, sized requests and bytes of each key, from what was asked and not from the lines."""
    counts: Counter[Any] = Counter()
    for each in asked:
        size, ms = format.size(each), format.ms(each)
        below = (
            None if ms is None else next(bound for bound in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000) if bound > ms)
        )
        traffic = {FIREFOX: ("human", None), GPTBOT: ("ai", "GPTBot")}.get(each.user_agent, ("bot", "curl"))
        key = each.at.date(), *traffic, KIND_OF_PATHS[each.target], each.status, format.cache, below
        counts[*key, "requests"] += 1
        counts[*key, "sized"] += size is not None
        counts[*key, "bytes"] += size or 0
    return counts


def stored(site: Site) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for row in site.stored(REQUESTS_TABLE):
        key = [row[name] for name in ("date", "traffic", "agent", "kind", "status", "cache", "ms_below")]
        counts.update({(*key, name): row[name] for name in ("requests", "sized", "bytes")})
    return counts


def run_import(site: Site, log: Path, options: Options = DEFAULTS) -> Any:
    return import_logs(site.hot, site.root, "site", [str(log)], SECRET, (NOON + DAY).timestamp, options)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, 60) for name in FORMATS),
        *(pytest.param(name, 6_000, marks=pytest.mark.long) for name in ("combined", "cloudfront", "caddy")),
    ],
)  # 60 requests are stored through the hot log, and 6,000 in staged files
def test_requests_bytes_and_times_are_those_that_were_asked(tmp_path: Path, name: str, number: int, log: Path) -> None:
    format, asked = FORMATS[name], [*requests(number, number)]
    log.write_text(format.head + "".join(map(format.write, asked)))
    with closing(Site(tmp_path / "data")) as site:
        run_import(site, log, Options(format=format.log_format))
        assert stored(site) == +expected(format, asked)
        run_import(site, log, Options(format=format.log_format))
        assert stored(site) == +expected(format, asked)
        site.load()
        assert site.faults() == []


def test_kind_of_a_path() -> None:
    kinds = {path: kind_of(Request(0, "GET", path, 200, "", "")) for path in KIND_OF_PATHS}
    assert kinds == KIND_OF_PATHS
    assert {*kinds.values()} == {*KINDS}
    assert kind_of(Request(0, "GET", "/a" * 10_000, 200, "", "")) == "other"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("HIT", "hit"), ("STALE", "hit"), ("MISS", "miss"), ("Error", "miss"), ("dynamic", "miss"), ("-", None),
        ("", None),
    ],
)  # fmt: skip
def test_state_of_a_cache(state: str, expected: str | None) -> None:
    assert cache_of(state) == expected


def test_times_count_below_the_next_bound() -> None:
    times = [None, -1, 0, 0.9, 1, 4.9, 5, 499_999, 500_000, 1e300]
    assert [*map(ms_below, times)] == [None, None, 1, 1, 2, 5, 10, 500_000, 500_000, 500_000]


APACHE = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $bytes_sent "$http_referer" "$http_user_agent"'
    " $request_time_us"
)


@pytest.mark.parametrize(
    ("written", "log_format", "sized"),
    [
        (line(status=b"304", size=b"-"), None, 1),
        (line(status=b"304", size=b"-").rpartition(b' "')[0].rpartition(b' "')[0], "common", 1),
        (line(status=b"304", size=b"-", referrer=b"a\\x41"), None, 1),  # not parsed by columns
        (line(status=b"304", size=b"-") + b" 1200", APACHE, 1),
        (test_json_lines.line("netlify"), None, 0),
    ],
)
def test_dash_of_combined_formats_is_0_bytes_and_a_size_that_is_not_logged_is_not_counted(
    tmp_path: Path, log: Path, written: bytes, log_format: str | None, sized: int
) -> None:
    log.write_bytes(written + b"\n")
    with closing(Site(tmp_path / "data")) as site:
        run_import(site, log, Options(format=log_format))
        [row] = site.stored(REQUESTS_TABLE)
        assert (row["requests"], row["sized"], row["bytes"], row["date"]) == (1, sized, 0, TODAY)


SAMPLE = Path(__file__).parents[4] / "sample_data/access.log"
AWK_SUMS = r"""
BEGIN { FS = "\"" }
$1 ~ /\[[0-9][0-9]\/[A-Z][a-z]+\/2026:([01][0-9]|2[0-3]):/ && $3 ~ /^ [0-9]+ ([0-9]+|-) $/ {
    is_request = $2 ~ /^[A-Z]+ [^ ]+ HTTP\/[0-9.]+$/ && $1 !~ /\[31\/Sep/ && /"$/
    kind = is_request ? "request" : "other"
    split($3, fields, " ")
    lines[kind]++
    bytes[kind] += fields[2]
}
END { printf "%d %d %d %d\n", lines["request"], bytes["request"], lines["other"], bytes["other"] }
"""


@pytest.mark.needs("goaccess")
def test_requests_and_bytes_of_the_sample_log_are_those_of_awk_and_goaccess(tmp_path: Path) -> None:
    """GoAccess also counts six lines without a request of HTTP, such as a TLS handshake, one of the 31st of September,
    and one whose end is missing."""
    command = ["awk", AWK_SUMS, str(SAMPLE)]
    summed = subprocess.run(command, env=os.environ | {"LC_ALL": "C"}, check=True, capture_output=True, text=True)
    requests, size, other, of_other = map(int, summed.stdout.split())
    with closing(Site(tmp_path / "data")) as site:
        now = datetime(2026, 10, 2, tzinfo=UTC).timestamp()
        import_logs(site.hot, site.root, "site", [str(SAMPLE)], SECRET, lambda: now, DEFAULTS)
        rows = site.stored(REQUESTS_TABLE)
        assert tuple(sum(row[name] for row in rows) for name in ("requests", "bytes")) == (requests, size)
    report = tmp_path / "report.json"
    options = ["--no-global-config", "--log-format=COMBINED", "--no-progress", "-o", report]
    subprocess.run(["goaccess", SAMPLE, *options], check=True, capture_output=True)
    counted = json.loads(report.read_text("latin-1"))["general"]
    assert (counted["valid_requests"], counted["bandwidth"]) == (requests + other, size + of_other)
    assert (requests, size, other, of_other) == (4_953, 137_921_397, 8, 336_551)


def test_requests_older_than_the_ledger_are_refused(tmp_path: Path, log: Path) -> None:
    log.write_bytes(line(b"GET /robots.txt HTTP/1.1") + b"\n")
    since = int((datetime(2026, 9, 20, tzinfo=UTC)).timestamp()) * 1_000_000
    with closing(Site(tmp_path / "data")) as site:
        with pytest.raises(LedgerIncomplete):
            run_import(site, log, Options(ledger_from_us=since))
        assert site.stored(REQUESTS_TABLE) == []


def test_request_of_another_century_is_not_counted(tmp_path: Path, log: Path) -> None:
    log.write_bytes(line(b"GET /a.css HTTP/1.1", time=b"15/Sep/1907:10:00:00 +0000") + b"\n" + line() + b"\n")
    with closing(Site(tmp_path / "data")) as site:
        run_import(site, log)
        assert [row["date"] for row in site.stored(REQUESTS_TABLE)] == [TODAY]
