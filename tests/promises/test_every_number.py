"""Every number can be explained: each row of each report is the number of its hits, and each hit names its rule."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_address, ip_network

import duckdb
import httpx
import pytest

from ingest.verification import address_lists
from tests.processes.running import PROJECT, Running
from tests.warehouse.site import ROOT
from warehouse.columns.dimensions import BREAKDOWNS

COLUMNS = {
    "agent": "agent",
    "operator": "operator",
    "purpose": "purpose",
    "verification": "CASE WHEN traffic <> 'human' THEN coalesce(verification, 'not_checked') END",
    "referrerHost": "referrer_host",
    "utmSource": "utm_source",
    "utmMedium": "utm_medium",
    "utmCampaign": "utm_campaign",
    "utmTerm": "utm_term",
    "utmContent": "utm_content",
    "click": "click",
    "channel": "channel",
    "country": "country",
    "language": "language",
    "browser": "browser",
    "os": "os",
    "device": "device",
    "format": "format",
    "status": "CAST(status AS VARCHAR)",
    "source": "source",
    "evidence": "CASE WHEN traffic = 'human' THEN "
    "CASE WHEN source = 'beacon' THEN 'script' "
    "WHEN (date, visitor) IN (SELECT (date, visitor) FROM {loads}) THEN 'assets' ELSE 'none' END END",
    "rule": "rule",
    "path": "path",
}
"""SQL over `hits`, and `loads` of assets, of the value of each dimension of a breakdown."""
GOALS = {"Docs": ("path", "/docs/*"), "Beacon": ("path", "/beacon"), "Signups": ("event", "Signup")}
REACHED = {"Docs": "path LIKE '/docs/%'", "Beacon": "path = '/beacon'", "Signups": "name = 'Signup'"}
"""Kind and value of each goal, and the SQL over `hits` or `events` of what reaches it."""
MARKDOWN = "text/markdown, */*"
COUNTS = ", ".join(f"count(*) FILTER (traffic = '{each}')" for each in ("human", "ai", "bot"))
PEOPLE_AND_AI = "count(*) FILTER (traffic = 'human'), count(*) FILTER (traffic = 'ai')"
KINDS = ("= 'human'", "= 'ai'", "<> 'bot'")
SEPTEMBER = "dateFrom=2026-09-01&dateTo=2026-10-01"
"""The month of the sample log: all hours until today would be too many."""
SPOOFED = "bot:spoofed:GPTBot"
"""Rule of a hit that names GPTBot and comes from another address, which no user agent shows."""
ADDRESSES = {"/spoofed": "9.9.9.8", "/verified": "20.171.206.7"}
"""Paths of hits that name GPTBot, each with its address."""
GPTBOT = {"userAgent": "GPTBot/1.3", "timestamp": "2026-09-03T12:00:00Z"}
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"
VISITS = """
SELECT {page}(path ORDER BY ts, path) AS page, count(*) AS views
FROM (SELECT *, sum(is_new) OVER (PARTITION BY date, visitor ORDER BY ts, path) AS number
      FROM (SELECT *, if(ts - lag(ts) OVER (PARTITION BY date, visitor ORDER BY ts, path)
                         <= INTERVAL 30 MINUTE, 0, 1) AS is_new
            FROM {hits} WHERE traffic = 'human' AND visitor IS NOT NULL))
GROUP BY date, visitor, number
"""
"""Visits of people in one log: a visit ends 30 minutes before the next page view, and with the UTC day."""


def get(running: Running, report: str) -> dict[str, object]:
    """Return a report of the API, whole."""
    answer = httpx.get(f"{running.url}/v1/{report}", headers=running.auth, timeout=60)
    assert answer.status_code == 200, answer.text
    answered: dict[str, object] = answer.json()
    assert not answered.get("hasMore")
    return answered


def counts(row: dict[str, int]) -> tuple[int, int, int]:
    return row["human"], row["ai"], row["bot"]


def parquet(running: Running, table: str) -> str:
    """Return the relation of the files of a table."""
    return f"read_parquet({running.run('files', table).stdout.split()})"


def rows(sql: str) -> Counter[tuple[object, ...]]:
    return Counter(duckdb.sql(sql).fetchall())


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Yield a service with the sample log, hits of a page and of a server, events, and goals; all of them in files."""
    running = Running(tmp_path_factory.mktemp("explained") / "data").start()
    try:
        assert running.run("import", PROJECT, str(ROOT / "sample_data" / "access.log")).returncode == 0
        events = [{"name": "Signup", "path": "/a", "userAgent": each} for each in (FIREFOX, "GPTBot/1.3", FIREFOX)]
        sent = httpx.post(f"{running.url}/v1/analytics/{PROJECT}/events", json=events, headers=running.auth)
        assert sent.status_code == 202, sent.text
        posted = [
            {"path": "/markdown", "userAgent": FIREFOX, "accept": MARKDOWN},
            *({**GPTBOT, "path": path, "address": address} for path, address in ADDRESSES.items()),
        ]
        sent = running.post(posted)
        assert sent.json()["accepted"] == 3, sent.text
        pixel = f"{running.url}/v1/analytics/{PROJECT}/pixel.gif?path=/beacon"
        assert httpx.get(pixel, headers={"User-Agent": FIREFOX}).status_code == 200
        for name, (kind, value) in GOALS.items():
            goal = {"name": name, "kind": kind, "value": value}
            added = httpx.post(f"{running.url}/v1/projects/{PROJECT}/goals", json=goal, headers=running.auth)
            assert added.status_code == 201, added.text
        assert running.run("flush").returncode == 0
        yield running
    finally:
        running.kill()


def test_each_row_leads_to_hits_whose_rules_classify_repeats(running: Running) -> None:
    assert COLUMNS.keys() == {*BREAKDOWNS}
    hits, loads = parquet(running, "hits"), parquet(running, "asset_loads")
    for name, column in COLUMNS.items():
        answered = get(running, f"analytics/{PROJECT}/breakdown?by={name}&limit=250")
        found = Counter((row["value"], *counts(row)) for row in answered["rows"])
        sql = f"SELECT {column.format(loads=loads)} AS value, {COUNTS} FROM {hits} GROUP BY ALL"
        assert found == rows(sql), name
        assert found, name
    for interval, start in (("day", "%Y-%m-%d"), ("hour", "%Y-%m-%dT%H")):
        buckets = get(running, f"analytics/{PROJECT}/series?interval={interval}&{SEPTEMBER}")["series"]
        found = Counter((row["start"][:13], *counts(row)) for row in buckets if any(counts(row)))
        bucket = f"strftime(ts AT TIME ZONE 'UTC', '{start}')"
        assert found == rows(f"SELECT {bucket}, {COUNTS} FROM {hits} WHERE date < '2026-10-01' GROUP BY ALL"), interval
    paths = get(running, f"analytics/{PROJECT}/views?limit=250")["views"]
    views = rows(f"SELECT path, {PEOPLE_AND_AI} FROM {hits} WHERE traffic <> 'bot' GROUP BY ALL")
    assert Counter((row["path"], row["human"], row["ai"]) for row in paths) == views

    fields = ("traffic", "agent", "operator", "purpose", "rule")
    distinct = rows(f"SELECT DISTINCT user_agent, path = '/markdown', {', '.join(fields)} FROM {hits}")
    for user_agent, is_markdown, *classified in distinct:
        query = httpx.QueryParams({"userAgent": user_agent} | ({"accept": MARKDOWN} if is_markdown else {}))
        repeated = get(running, f"classify?{query}")
        if classified[-1] == SPOOFED:  # by its address, so that no operator read the page
            repeated |= {"traffic": "bot", "operator": None, "purpose": None, "rule": SPOOFED}
        assert [repeated[each] for each in fields] == classified, user_agent
    assert {"ai:accept-markdown", SPOOFED, "human:browser"} <= {classified[-1] for classified in distinct}
    lists = {each.label: each.prefixes for each in address_lists.shipped().values()}
    verdicts = rows(f"SELECT path, verification, verified_by FROM {hits} WHERE path IN {(*ADDRESSES,)}")
    assert len(verdicts) == len(ADDRESSES)
    for path, verification, by in verdicts:
        is_listed = any(ip_address(ADDRESSES[str(path)]) in ip_network(prefix) for prefix in lists[str(by)])
        assert verification == ("verified" if is_listed else "spoofed"), path


def test_each_row_of_visitors_and_visits_leads_to_its_hits(running: Running) -> None:
    hits = parquet(running, "hits")
    of_kinds = ", ".join(f"count(DISTINCT (date, visitor)) FILTER (traffic {kinds})" for kinds in KINDS)
    found = get(running, f"analytics/{PROJECT}/visitors?limit=250")["visitors"]
    assert Counter((row["path"], row["human"], row["ai"], row["total"]) for row in found) == rows(
        f"SELECT path, {of_kinds} FROM {hits} WHERE traffic <> 'bot' AND visitor IS NOT NULL GROUP BY path"
    )
    for name, page in (("entryPage", "first"), ("exitPage", "last")):
        answered = get(running, f"analytics/{PROJECT}/breakdown?by={name}&limit=250")
        found = Counter((row["value"], row["human"], row["visits"]) for row in answered["rows"])
        visits = VISITS.format(hits=hits, page=page)
        assert found == rows(f"SELECT page, sum(views)::BIGINT, count(*) FROM ({visits}) GROUP BY page"), name
        assert found, name


def test_each_row_of_errors_cost_and_events_is_that_of_its_table(running: Running) -> None:
    requests, events = parquet(running, "requests"), parquet(running, "events")
    found = get(running, f"analytics/{PROJECT}/errors?limit=250")["errors"]
    assert Counter(
        (row["path"], row["agent"], row["traffic"], row["status"], row["requests"]) for row in found
    ) == rows(f"SELECT path, agent, traffic, status, sum(errors)::BIGINT FROM {requests} WHERE errors > 0 GROUP BY ALL")
    for name in ("agent", "operator", "kind", "status", "source"):
        found = get(running, f"analytics/{PROJECT}/cost?by={name}&limit=250")["rows"]
        sums = f"sum(requests)::BIGINT, sum(bytes)::BIGINT FROM {requests} WHERE requests > 0 GROUP BY ALL"
        cost = Counter((row["value"], row["requests"], row["bytes"]) for row in found)
        assert cost == rows(f"SELECT {name}::VARCHAR, {sums}"), name
    found = get(running, f"analytics/{PROJECT}/events?limit=250")["events"]
    counted = Counter((row["name"], row["traffic"], row["events"]) for row in found)
    assert counted == rows(f"SELECT name, traffic, count(*) FROM {events} GROUP BY ALL")
    assert {("Signup", "human", 2), ("Signup", "ai", 1)} <= counted.keys()


def test_conversions_of_each_goal_lead_to_its_hits_and_events(running: Running) -> None:
    hits, events = parquet(running, "hits"), parquet(running, "events")
    found = get(running, f"analytics/{PROJECT}/goals?limit=250")["goals"]
    names = ("goal", "traffic", "conversions", "goalVisitors", "visitors")
    counted = {tuple(row[name] or 0 for name in names) for row in found}
    for goal, reached in REACHED.items():
        done = f"(FROM {events if GOALS[goal][0] == 'event' else hits} WHERE {reached})"
        for traffic in ("human", "ai"):
            of_traffic = f"(FROM {hits} WHERE traffic = '{traffic}' AND visitor IS NOT NULL)"
            ((conversions, converted, visitors),) = duckdb.sql(f"""SELECT
                (SELECT count(*) FROM {done} WHERE traffic = '{traffic}'),
                (SELECT count(DISTINCT (date, visitor)) FROM {done} SEMI JOIN {of_traffic} USING (date, visitor)
                    WHERE traffic = '{traffic}'),
                (SELECT count(DISTINCT (date, visitor)) FROM {of_traffic})""").fetchall()
            assert (goal, traffic, conversions, converted, visitors) in counted
    assert len(counted) == 2 * len(GOALS)
    assert {("Beacon", "human", 1), ("Signups", "human", 2), ("Signups", "ai", 1)} <= {row[:3] for row in counted}


def test_coverage_leads_to_the_first_and_last_hits_and_the_days_between(running: Running) -> None:
    sources = get(running, f"analytics/{PROJECT}/coverage")["sources"]
    found = {each["source"]: [each["firstHit"][:19], each["lastHit"][:19], each["missingDays"]] for each in sources}
    first, last = (f"strftime({each}(ts) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S')" for each in ("min", "max"))
    sql = f"SELECT source, {first}, {last}, list(DISTINCT date) FROM {parquet(running, 'hits')} GROUP BY source"
    counted = {source: times for source, *times in duckdb.sql(sql).fetchall()}
    assert found.keys() == counted.keys() == {"beacon", "server", "log"}
    for source, (first, last, dates) in counted.items():
        days = {min(dates) + timedelta(number) for number in range((max(dates) - min(dates)).days)}
        assert found[source] == [first, last, [str(day) for day in sorted(days - {*dates})]]
    assert found["server"][2]
