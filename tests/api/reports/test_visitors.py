"""The export of visitors: distinct by UTC day, a union of people and AI, in the order and the pages of `views`."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache

import httpx
import pyarrow as pa
import pytest

from api.reports.metrics import KNOWN, VISITORS, columns
from tests.api.reports.client import (
    COUNTS,
    CSV,
    FIREFOX,
    GOOGLEBOT,
    GPTBOT,
    NDJSON,
    NOTHING,
    PARQUET,
    client_of,
    problem,
    table,
)
from tests.processes.running import Running
from warehouse.report.audience.visitors import COLUMNS

ONE, TWO = "203.0.113.1", "203.0.113.2"


@cache
def today() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def post(site: httpx.Client, *hits: tuple[str, str, str | None, dict[str, str]]) -> None:
    at = today().isoformat()
    rows = [
        {"path": path, "userAgent": agent, "timestamp": at, **({"address": address} if address else {}), **more}
        for path, agent, address, more in hits
    ]
    assert site.post("hits", json=rows).json()["accepted"] == len(rows)


def row(path: str, human: int, ai: int, total: int) -> dict[str, object]:
    return {"path": path, "human": human, "ai": ai, "total": total}


def shares(human: float | None, ai: float | None, total: float | None) -> dict[str, float | None]:
    return {"human": human, "ai": ai, "total": total}


@pytest.fixture(scope="module")
def visited(service: Running) -> Iterator[httpx.Client]:
    markdown, yesterday = {"accept": "text/markdown"}, {"timestamp": (today() - timedelta(hours=1)).isoformat()}
    of_ada = [("/a", FIREFOX, ONE, more) for more in ({}, {}, markdown, yesterday)]
    bots = [("/b", GPTBOT, ONE, {}), ("/b", GPTBOT, TWO, {}), ("/bots", GOOGLEBOT, TWO, {})]
    with client_of(service, "reports-visitors") as client:
        post(client, *of_ada, ("/b", FIREFOX, ONE, {}), *bots, ("/a", FIREFOX, None, {}))
        yield client


def test_visitor_counts_once_a_day_and_once_for_people_and_ai(visited: httpx.Client) -> None:
    everything = visited.get("visitors").json()
    assert everything == {
        "totals": {"human": 2, "ai": 3, "total": 4},
        "visitors": [row("/b", 1, 2, 3), row("/a", 2, 1, 2)],
        "hasMore": False,
        "measured": {"human": "all", "ai": "all", "bot": "all"},
        "visitorsKnown": shares(80, 100, 87.5),
    }
    of_today = visited.get(f"visitors?dateFrom={today().date()}&limit=1").json()
    assert (of_today["totals"], of_today["visitors"]) == ({"human": 1, "ai": 3, "total": 3}, [row("/b", 1, 2, 3)])
    assert of_today["hasMore"]
    assert visited.get(f"visitors?dateFrom={today().date()}&offset=1").json()["visitors"] == [row("/a", 1, 1, 1)]
    assert visited.get("visitors?traffic=human&path=/*").json()["totals"] == {"human": 2, "ai": 0, "total": 2}


PEOPLE = {"human": 2, "ai": 3, "total": 4}
EVERY = "metrics=views,visitors,visits,bounceRate,visitDuration,viewsPerVisit"


def metrics(
    human: int, ai: int, total: int, visits: int, views: float | None, bounce: float | None = None
) -> dict[str, object]:
    return {
        "visitors": {"human": human, "ai": ai, "total": total},
        "visits": visits,
        "bounceRate": bounce,
        "visitDuration": None if bounce is None else 0,
        "viewsPerVisit": views,
    }


def of_metrics(row: dict[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in {*COUNTS, "bot", "visitorsKnown", *names}}


def test_metrics_are_beside_the_views(visited: httpx.Client) -> None:
    plain = visited.get("breakdown?by=path").json()
    report = visited.get(f"breakdown?by=path&{EVERY}").json()
    assert of_metrics(report["totals"]) == metrics(2, 3, 4, 2, 2)
    assert [of_metrics(row) for row in report["rows"]] == [
        {"value": "/a", **metrics(2, 1, 2, 2, 2)},
        {"value": "/b", **metrics(1, 2, 3, 0, None)},
        {"value": "/bots", **metrics(0, 0, 0, 0, None)},
    ]
    for each, row in zip((report["totals"], *report["rows"]), (plain["totals"], *plain["rows"]), strict=True):
        assert {name: each[name] for name in row} == row
    one = visited.get("breakdown?by=path&metrics=visitors&limit=1").json()
    known = {"visitorsKnown": shares(75, 100, 80)}
    assert one["rows"] == [{**plain["rows"][0], "visitors": {"human": 2, "ai": 1, "total": 2}, **known}]
    assert report["totals"]["visitorsKnown"] == shares(80, 100, 87.5)
    assert [row["visitorsKnown"] for row in report["rows"]] == [
        shares(75, 100, 80),
        shares(100, 100, 100),
        shares(None, None, None),
    ]
    assert visited.get("breakdown?by=path&metrics=views").json() == plain


def test_entry_and_exit_pages_have_every_metric(visited: httpx.Client) -> None:
    for by, expected in {
        "entryPage": [{"value": "/a", **metrics(2, 0, 2, 2, 2)}],
        "exitPage": [{"value": "/a", **metrics(1, 0, 1, 1, 1)}, {"value": "/b", **metrics(1, 0, 1, 1, 3)}],
    }.items():
        report = visited.get(f"breakdown?by={by}").json()
        assert [of_metrics(row) for row in report["rows"]] == expected
        assert report["totals"]["visits"] == sum(row["visits"] for row in report["rows"])
        for row in report["rows"]:
            assert row["visitorsKnown"] == shares(100, None, 100)
            asked = f"{by}={row['value']}&{EVERY}"
            assert {**visited.get(f"series?{asked}").json()["totals"], "value": row["value"]} == row
        assert table(visited.get(f"breakdown?by={by}&metrics=views", headers={"Accept": NDJSON}))[0]["value"] == "/a"


def test_tables_have_every_path_and_the_columns_of_metrics(visited: httpx.Client) -> None:
    names = [*COUNTS, "visitorsHuman", "visitorsAi", "visitorsTotal", "bounceRate", "viewsPerVisit", *KNOWN.values()]
    for kind in (CSV, PARQUET, NDJSON):
        response = visited.get("visitors?limit=1", headers={"Accept": kind})
        assert table(response) == [row("/b", 1, 2, 3), row("/a", 2, 1, 2)]
        asked = "breakdown?by=agent&metrics=viewsPerVisit,visitors,bounceRate"
        assert [*table(visited.get(asked, headers={"Accept": kind}))[0]][1:] == names


def test_series_has_the_metrics_of_each_interval(visited: httpx.Client) -> None:
    report = visited.get(f"series?{EVERY}&dateTo={(today() + timedelta(days=1)).date()}").json()
    assert [of_metrics(row, "start") for row in report["series"]] == [metrics(1, 0, 1, 1, 1), metrics(1, 3, 3, 1, 3)]
    assert of_metrics(report["totals"]) == metrics(2, 3, 4, 2, 2)
    hours = visited.get("series?interval=hour&metrics=visitors,visits&timezone=Asia/Kathmandu").json()
    for kind, number in PEOPLE.items():
        assert sum(row["visitors"][kind] for row in hours["series"] if row["visitors"][kind]) == number


def test_bounce_rate_and_duration_are_means_of_the_visits_that_the_script_saw() -> None:
    counts = pa.table({**{name: [5, 0, 0] for name in COLUMNS}, "bounces": [1, 0, 0], "visit_seconds": [100, 0, 0],
        "visits": [7, 2, 0], "visit_views": [11, 2, 0], "timed": [3, 0, 0]})  # fmt: skip
    known = pa.table({name: [100.0] * 3 for name in VISITORS})
    shown = columns(counts, known, {"human": [False, True, True], "ai": [True] * 3, "bot": [True] * 3})
    assert shown.drop_columns(["visitorsAi", "visitorsTotal", *KNOWN.values()]).to_pylist() == [
        {"visitorsHuman": 5, "visits": 7, "bounceRate": 33.3, "visitDuration": 33, "viewsPerVisit": 1.57},
        {"visitorsHuman": None, "visits": 2, "bounceRate": None, "visitDuration": None, "viewsPerVisit": 1},
        {"visitorsHuman": None, "visits": None, "bounceRate": None, "visitDuration": None, "viewsPerVisit": None},
    ]
    assert shown["visitorsAi"].to_pylist() == [5, None, None]


def test_unknown_metric_is_refused_with_those_that_are_possible(visited: httpx.Client) -> None:
    for metrics in ("views,people", "", "views,", "Views"):
        body = problem(visited.get(f"series?metrics={metrics}"), 400)
        assert "metrics must be of views, visitors, visits, bounceRate, visitDuration, viewsPerVisit" in body["detail"]


def test_visitors_without_an_address_are_not_measured(site: httpx.Client) -> None:
    post(site, ("/a", FIREFOX, None, {}))
    answer = site.get("visitors").json()
    visitors = answer.pop("visitors")
    assert {**answer, "views": visitors} == {**NOTHING, "visitorsKnown": shares(0, None, 0)}


def test_visitors_of_views_without_an_address_are_unknown_beside_known_ones(site: httpx.Client) -> None:
    at = [{"timestamp": (today() - timedelta(minutes=each)).isoformat()} for each in (2_355, 2_335, 2_280, 540, 480)]
    known = [("/known", FIREFOX, ONE, at[0]), ("/a", GPTBOT, ONE, at[0]), ("/known", FIREFOX, ONE, at[1])]
    post(site, *known, ("/a", FIREFOX, None, at[2]), ("/b", GPTBOT, None, at[3]), ("/a", FIREFOX, None, at[4]))
    of_a = {**metrics(0, 1, 1, 0, None), "visitors": {"human": None, "ai": 1, "total": 1}, "visits": None}
    of_b = {**metrics(0, 0, 0, 0, None), "visitors": {"human": 0, "ai": None, "total": None}}
    report = site.get(f"breakdown?by=path&{EVERY}").json()
    assert of_metrics(report["totals"]) == metrics(1, 1, 2, 1, 2)
    assert report["totals"]["visitorsKnown"] == shares(50, 50, 50)
    assert {row["value"]: tuple(row["visitorsKnown"].values()) for row in report["rows"]} == {
        "/a": (0, 100, 33.3), "/b": (None, 0, 0), "/known": (100, None, 100)
    }  # fmt: skip
    assert {row["value"]: of_metrics(row, "value") for row in report["rows"]} == {
        "/a": of_a, "/b": of_b, "/known": metrics(1, 0, 1, 1, 2)
    }  # fmt: skip
    of_paths = [site.get(f"breakdown?by=agent&{EVERY}&path={path}").json()["totals"] for path in ("/a", "/b")]
    assert [of_metrics(each) for each in of_paths] == [of_a, of_b]
    first, last = (f"{(today() - timedelta(hours=hour)).isoformat().replace('+00:00', 'Z')}" for hour in (40, 8))
    hours = site.get(f"series?interval=hour&metrics=visitors,visits&dateFrom={first}&dateTo={last}").json()["series"]
    people = [(row["visitors"]["human"], row["visits"]) for row in hours]
    assert people == [(1, 1), (0, 0), (None, None), *[(0, 0)] * 29]
    assert hours[31]["visitors"] == {"human": 0, "ai": None, "total": None}
    days, columns = (
        table(site.get(f"series?{EVERY}", headers={"Accept": CSV})),
        ("visitorsHuman", "visitorsAi", "visits"),
    )
    assert [tuple(row[name] for name in columns) for row in days[:2]] == [("1", "1", "1"), (None, None, None)]
    assert [(row["visitorsKnownHuman"], row["visitorsKnownAi"]) for row in days[:2]] == [
        ("66.7", "100.0"),
        ("0.0", "0.0"),
    ]
    key, goal = {"Authorization": site.headers["authorization"]}, {"name": "A", "kind": "path", "value": "/a"}
    goals = str(site.base_url).replace("analytics", "projects") + "goals"
    assert httpx.post(goals, json=goal, headers=key).status_code == 201
    numbers = ("conversions", "goalVisitors", "visitors", "conversionRate")
    range_of_a = f"dateFrom={(today() - timedelta(days=2)).date()}&dateTo={today().date()}"
    reached = [site.get(f"goals?{asked}").json()["goals"] for asked in ("path=/a", "path=/known", range_of_a)]
    assert [[tuple(row[name] for name in numbers) for row in rows] for rows in reached] == [
        [(0, None, None, None), (1, 1, 1, 100)],
        [(0, 0, 1, 0), (0, 0, 0, None)],
        [(2, None, 1, None), (1, 1, 1, 100)],
    ]


def test_visitor_who_counts_with_another_verification_is_known_and_not_null(site: httpx.Client) -> None:
    bot = "Mozilla/5.0 (compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)"
    at = [{"timestamp": (today() - timedelta(hours=each)).isoformat()} for each in (12, 11)]
    post(site, *(("/v", bot, f"2a00:1:2:1::{end}", each) for end, each in zip(("", "5"), at, strict=True)))
    report = site.get("series?metrics=visitors&agent=PerplexityBot&verification=not_checked").json()
    nobody, known = {"human": 0, "ai": 0, "total": 0}, shares(None, 100, 100)
    assert report["totals"] == {"human": 0, "ai": 1, "bot": 0, "total": 1, "visitors": nobody, "visitorsKnown": known}
    assert [row["visitors"] for row in report["series"]] == [nobody] * len(report["series"])
