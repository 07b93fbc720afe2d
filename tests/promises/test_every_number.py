"""Every number can be explained: each row of each report is the number of its hits, and each hit names its rule."""

import duckdb
import httpx
import pytest

from tests.processes.running import PROJECT, Running
from tests.warehouse.site import ROOT

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
    "rule": "rule",
    "path": "path",
}
"""SQL over `hits` of the value of each dimension of a breakdown."""
COUNTS = ", ".join(f"count(*) FILTER (traffic = '{each}')" for each in ("human", "ai", "bot"))


def get(running: Running, report: str) -> dict[str, object]:
    """Return a report of the API, whole."""
    answer = httpx.get(f"{running.url}/v1/{report}", headers=running.auth, timeout=60)
    assert answer.status_code == 200, answer.text
    answered: dict[str, object] = answer.json()
    assert not answered.get("hasMore")
    return answered


def counts(row: dict[str, int]) -> tuple[int, int, int]:
    return row["human"], row["ai"], row["bot"]


def test_each_row_leads_to_hits_whose_rules_classify_repeats(tmp_path_factory: pytest.TempPathFactory) -> None:
    running = Running(tmp_path_factory.mktemp("explained") / "data").start()
    try:
        assert running.run("import", PROJECT, str(ROOT / "sample_data" / "access.log")).returncode == 0
        assert running.run("flush").returncode == 0
        hits = f"read_parquet({running.run('files', 'hits').stdout.split()})"
        for name, column in COLUMNS.items():
            answered = get(running, f"analytics/{PROJECT}/breakdown?by={name}&limit=250")
            rows = {row["value"]: counts(row) for row in answered["rows"]}
            stored = duckdb.sql(f"SELECT {column} AS value, {COUNTS} FROM {hits} GROUP BY ALL").fetchall()
            assert rows == {value: tuple(rest) for value, *rest in stored}, name
            assert rows, name
        buckets = get(running, f"analytics/{PROJECT}/series?interval=day")["series"]
        days = duckdb.sql(f"SELECT CAST(date AS VARCHAR), {COUNTS} FROM {hits} GROUP BY ALL").fetchall()
        assert {row["start"]: counts(row) for row in buckets if any(counts(row))} == {
            day: (*rest,) for day, *rest in days
        }
        paths = get(running, f"analytics/{PROJECT}/views?limit=250")["views"]
        views = duckdb.sql(f"SELECT path, {COUNTS} FROM {hits} WHERE traffic <> 'bot' GROUP BY ALL").fetchall()
        assert {row["path"]: (row["human"], row["ai"]) for row in paths} == {path: (*rest,) for path, *rest, _ in views}

        fields = ("traffic", "agent", "operator", "purpose", "rule")
        for user_agent, *classified in duckdb.sql(
            f"SELECT DISTINCT user_agent, {', '.join(fields)} FROM {hits}"
        ).fetchall():
            query = httpx.QueryParams(userAgent=user_agent)
            repeated = get(running, f"classify?{query}")
            assert [repeated[each] for each in fields] == classified, user_agent
    finally:
        running.kill()
