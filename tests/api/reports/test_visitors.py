"""The export of visitors: distinct by UTC day, a union of people and AI, in the order and the pages of `views`."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.api.reports.client import CSV, FIREFOX, GOOGLEBOT, GPTBOT, NDJSON, PARQUET, table

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
ONE, TWO = "203.0.113.1", "203.0.113.2"


def post(site: httpx.Client, *hits: tuple[str, str, str | None, dict[str, str]]) -> None:
    rows = [
        {
            "path": path,
            "userAgent": agent,
            "timestamp": TODAY.isoformat(),
            **({"address": address} if address else {}),
            **more,
        }
        for path, agent, address, more in hits
    ]
    assert site.post("hits", json=rows).json()["accepted"] == len(rows)


def row(path: str, human: int, ai: int, total: int) -> dict[str, object]:
    return {"path": path, "human": human, "ai": ai, "total": total}


@pytest.fixture
def visited(site: httpx.Client) -> httpx.Client:
    markdown, yesterday = {"accept": "text/markdown"}, {"timestamp": (TODAY - timedelta(hours=1)).isoformat()}
    post(
        site,
        *(("/a", FIREFOX, ONE, {}), ("/a", FIREFOX, ONE, {}), ("/a", FIREFOX, ONE, markdown), ("/b", FIREFOX, ONE, {})),
        *(
            ("/a", FIREFOX, ONE, yesterday),
            ("/b", GPTBOT, ONE, {}),
            ("/b", GPTBOT, TWO, {}),
            ("/bots", GOOGLEBOT, TWO, {}),
        ),
        ("/a", FIREFOX, None, {}),
    )
    return site


def test_visitor_counts_once_a_day_and_once_for_people_and_ai(visited: httpx.Client) -> None:
    everything = visited.get("visitors").json()
    assert everything == {
        "totals": {"human": 2, "ai": 3, "total": 4},
        "visitors": [row("/b", 1, 2, 3), row("/a", 2, 1, 2)],
        "hasMore": False,
        "measured": {"human": "all", "ai": "all", "bot": "all"},
    }
    today = visited.get(f"visitors?dateFrom={TODAY.date()}&limit=1").json()
    assert (today["totals"], today["visitors"]) == ({"human": 1, "ai": 3, "total": 3}, [row("/b", 1, 2, 3)])
    assert today["hasMore"]
    assert visited.get(f"visitors?dateFrom={TODAY.date()}&offset=1").json()["visitors"] == [row("/a", 1, 1, 1)]
    assert visited.get("visitors?traffic=human&path=/*").json()["totals"] == {"human": 2, "ai": 0, "total": 2}


@pytest.mark.parametrize("kind", [CSV, PARQUET, NDJSON])
def test_table_has_every_path(visited: httpx.Client, kind: str) -> None:
    response = visited.get("visitors?limit=1", headers={"Accept": kind})
    assert table(response) == [row("/b", 1, 2, 3), row("/a", 2, 1, 2)]


def test_visitors_without_an_address_are_not_measured(site: httpx.Client) -> None:
    post(site, ("/a", FIREFOX, None, {}))
    assert site.get("visitors").json() == {
        "totals": {"human": 0, "ai": 0, "total": 0},
        "visitors": [],
        "hasMore": False,
        "measured": {"human": "none", "ai": "none", "bot": "none"},
    }
