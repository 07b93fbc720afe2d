"""Reports of cost: on each day one source counts each request once, and unknown numbers are null."""

from contextlib import closing
from datetime import timedelta
from typing import Any

from tests.warehouse.site import DAY, NOON, Site, asked, view
from warehouse.query.snapshot import SnapshotReader
from warehouse.report.audience import requests
from warehouse.report.audience.requests import BY, RequestQuery
from warehouse.tables import REQUESTS_TABLE


def cost(site: Site, by: str = "agent", **filters: Any) -> list[dict[str, Any]]:
    with closing(SnapshotReader(site.hot_log, site.root)) as reader:
        snapshot = reader.take(spec=REQUESTS_TABLE)
        rows: list[dict[str, Any]] = requests.rows(
            site.database, snapshot, RequestQuery("site", filters=filters), by
        ).to_pylist()
        return rows


def test_server_counts_on_days_without_a_log_and_by_its_name(site: Site) -> None:
    served = {"source": "server", "traffic": "ai", "agent": "GPTBot", "status": 200, "bytes": 50}
    site.post(view(**served), view(**served, ts=NOON + DAY), view(**served, ts=NOON + DAY, path="/b"))
    site.post(view(**{**served, "status": None}, path="/unknown"))
    site.post_requests(asked(requests=3), asked(project="other", at=NOON + DAY))
    for _ in range(2):
        for source, counted, size in ((None, 5, 200), ("server", 3, 150), ("log", 3, 100)):
            [row] = cost(site, **({"source": source} if source else {}))
            assert (row["value"], row["requests"], row["bytes"]) == ("GPTBot", counted, size)
        site.load()


def test_requests_on_days_after_the_first_refusal_are_counted(site: Site) -> None:
    refused = {"status": 429, "first_seen": NOON, "last_seen": NOON}
    site.post_requests(
        asked(requests=9), asked(**refused), asked(at=NOON + DAY, requests=4), asked(agent="Gone", **refused)
    )
    site.post_requests(asked(agent="Welcome"))
    back = {row["value"]: (row["requests"], row["refused"], row["after_refusal"]) for row in cost(site)}
    assert back == {"GPTBot": (14, 1, 4), "Gone": (1, 1, 0), "Welcome": (1, 0, None)}
    assert all(row["after_refusal"] is None for by in BY[2:] for row in cost(site, by))


def test_requests_after_the_first_refusal_of_the_same_day_are_counted(site: Site) -> None:
    times = [NOON + timedelta(minutes=minute) for minute in range(-2, 5)]
    before, refusal, after = times[:2], times[2], times[3:]
    refused = asked(agent="Retries", status=429, at=refusal)
    rows = [
        refused,
        *(asked(agent="Retries", at=at) for at in (*before, *after)),
        {**refused, "last_seen": after[-1], "requests": 3},
    ]
    rows += [
        asked(agent="Polite", status=403, at=refusal),
        *(asked(agent="Polite", at=at, kind="asset") for at in before),
    ]
    rows += [asked(agent="Turns", status=503, at=refusal), *(asked(agent="Turns", at=at, kind="feed") for at in after)]
    for row in rows:  # each of a log of its own: compaction adds rows with equal keys
        site.post_requests(row)
    for _ in range(2):
        # 1 is known of the 200s before and after, and 3 of the four 429s
        assert {row["value"]: row["after_refusal"] for row in cost(site)} == {"Retries": 4, "Polite": 0, "Turns": 4}
        site.load()


def test_robots_txt_that_was_not_sent_is_not_read(site: Site) -> None:
    for minute, status in enumerate((200, 304, 503, 404, 301)):
        site.post_requests(asked(kind="robots", status=status, at=NOON + timedelta(minutes=minute)))
    assert [row["robots_read"] for row in cost(site)] == [NOON + timedelta(minutes=1)]


def test_share_is_0_only_for_no_request_and_100_only_for_all(site: Site) -> None:
    for name, requests_, sized in (("all", 9, 9), ("most", 5_000, 4_999), ("few", 5_000, 1), ("none", 5_000, 0)):
        site.post_requests(asked(agent=name, requests=requests_, sized=sized))
    assert {row["value"]: row["bytes_known"] for row in cost(site)} == {"all": 100, "most": 99.9, "few": 0.1, "none": 0}


def test_what_no_request_has_is_null(site: Site) -> None:
    site.post(view(source="server", traffic="ai", agent="GPTBot", status=200))
    [row] = cost(site)
    unknown = ("bytes", "p50_ms", "p95_ms", "after_refusal", "robots_read")
    assert [row[name] for name in unknown] == [None] * len(unknown)
    zeros = ("sized", "bytes_known", "timed", "times_known", "cached", "cache_known", "refused")
    assert [row[name] for name in zeros] == [0] * len(zeros)
