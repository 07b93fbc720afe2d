"""Series: the views of each interval, in the time zone of the request."""

import httpx

from tests.api.reports.client import COUNTS, CSV, NDJSON, PARQUET, problem, table

Rows = list[tuple[str, int, int, int]]
"""The start of an interval with its views by people, AI agents and other bots."""
RANGE = "dateFrom=2025-03-29&dateTo=2025-04-02"
DAYS: Rows = [("2025-03-29", 2, 0, 0), ("2025-03-30", 0, 2, 1), ("2025-03-31", 0, 0, 0), ("2025-04-01", 1, 1, 0)]
DAYS_IN_BERLIN: Rows = [
    ("2025-03-29", 1, 0, 0),
    ("2025-03-30", 1, 1, 1),
    ("2025-03-31", 0, 1, 0),
    ("2025-04-01", 1, 1, 0),
    ("2025-04-02", 0, 0, 0),
]


def rows(listed: Rows) -> list[dict[str, object]]:
    names = ("start", "human", "ai", "bot", "total")
    return [dict(zip(names, (*row, row[1] + row[2]), strict=True)) for row in listed]


def test_interval_without_views_is_a_row_of_zeros(hits: httpx.Client) -> None:
    of_months = [("2025-03-01", 2, 2, 1), ("2025-04-01", 1, 1, 0)]
    series: dict[str, Rows] = {
        RANGE: DAYS,
        f"interval=day&{RANGE}": DAYS,
        f"{RANGE}&timezone=Europe/Berlin": DAYS_IN_BERLIN,
        f"interval=week&{RANGE}": [("2025-03-24", 2, 2, 1), ("2025-03-31", 1, 1, 0)],
        f"interval=month&{RANGE}": of_months,
        f"interval=month&{RANGE}&traffic=ai": [("2025-03-01", 0, 2, 0), ("2025-04-01", 0, 1, 0)],
        f"interval=month&{RANGE}&path=/docs/b": [("2025-03-01", 0, 2, 0), ("2025-04-01", 0, 0, 0)],
        "interval=day&dateTo=2025-03-30T00:30:00.000001Z": [("2025-03-29", 2, 0, 0), ("2025-03-30", 0, 1, 0)],
    }
    for query, expected in series.items():
        human, ai, bot = (sum(row[column] for row in expected) for column in (1, 2, 3))
        assert hits.get(f"series?{query}").json() == {
            "totals": {"human": human, "ai": ai, "bot": bot, "total": human + ai},
            "series": rows(expected),
            "measured": dict.fromkeys(("human", "ai", "bot"), "part" if "dateFrom" in query else "all"),
        }, query


def test_interval_in_which_no_source_counted_is_unknown(hits: httpx.Client) -> None:
    """The first hit of the project is on 2025-03-29, and the last one on 2025-04-01."""
    report = hits.get("series?dateFrom=2025-03-27&dateTo=2025-04-03").json()
    unknown = [row["start"] for row in report["series"] if all(row[name] is None for name in COUNTS)]
    assert unknown == ["2025-03-27", "2025-03-28", "2025-04-02"]
    assert report["series"][4] == {"start": "2025-03-31", "human": 0, "ai": 0, "bot": 0, "total": 0}
    later = hits.get("series?dateFrom=2025-05-01&dateTo=2025-05-02").json()
    assert later["totals"] == {"human": None, "ai": None, "bot": None, "total": None}
    assert later["measured"] == {"human": "none", "ai": "none", "bot": "none"}
    csv = hits.get("series?dateFrom=2025-05-01&dateTo=2025-05-02", headers={"Accept": CSV}).text
    assert csv == "start,human,ai,bot,total\r\n2025-05-01,,,,\r\n"


def test_ai_is_unknown_if_only_pages_send_hits(beacon: httpx.Client) -> None:
    *_, today = beacon.get("series?interval=month").json()["series"]
    assert {**today, "start": ""} == {"start": "", "human": 1, "ai": None, "bot": None, "total": 1}


def test_day_on_which_the_clock_changes_has_23_hours(hits: httpx.Client) -> None:
    day = "dateFrom=2025-03-30T00:00:00%2B01:00&dateTo=2025-03-31T00:00:00%2B02:00"
    series = hits.get(f"series?interval=hour&timezone=Europe/Berlin&{day}").json()["series"]
    assert [row["start"] for row in series[:3]] == [
        "2025-03-30T00:00:00+01:00",
        "2025-03-30T01:00:00+01:00",
        "2025-03-30T03:00:00+02:00",
    ]
    assert len(series) == 23
    assert {row["start"]: (row["human"], row["ai"], row["bot"]) for row in series if row["total"] or row["bot"]} == {
        "2025-03-30T00:00:00+01:00": (1, 0, 0),
        "2025-03-30T01:00:00+01:00": (0, 1, 0),
        "2025-03-30T14:00:00+02:00": (0, 0, 1),
    }


def test_table_has_the_same_rows_in_each_format(hits: httpx.Client) -> None:
    for kind in (CSV, PARQUET, NDJSON):
        response = hits.get(f"series?{RANGE}&timezone=Europe/Berlin", headers={"Accept": kind})
        assert table(response) == rows(DAYS_IN_BERLIN)
        assert "-series-2025-03-29_2025-04-01." in response.headers["content-disposition"]


def test_series_without_dates_is_from_the_first_hit_to_today(hits: httpx.Client) -> None:
    series = hits.get("series?interval=month").json()["series"]
    assert series[0] == rows([("2025-03-01", 2, 2, 1)])[0]
    assert all(row["start"].endswith("-01") for row in series)


def test_too_many_intervals_are_an_error_with_the_limit(hits: httpx.Client) -> None:
    (error,) = problem(hits.get("series?interval=hour&dateFrom=2020-01-01&dateTo=2025-01-01"), 400)["errors"]
    assert error["parameter"] == "interval"
    assert "10,000" in error["detail"]
