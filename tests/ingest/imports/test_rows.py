"""Rows of a table of page views: they equal the rows of the hits, converted one by one."""

from collections import Counter

import pyarrow as pa

from ingest.classification.user_agent_cache import UserAgentCache
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.imports.rows import lake_rows, views_table
from ingest.verification.verifier import Verifier
from warehouse.schema import HOT

RECEIVED_US = 1_800_000_000_000_000
AGENTS = [
    "GPTBot/1.3",
    "",
    "curl/8.5",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7) Safari/604.1",
    "x" * 600,
]


def hit(number: int) -> Hit:
    return Hit(
        path=f"/{number % 3}",
        ts_us=RECEIVED_US - number,
        user_agent=AGENTS[number % 5],
        referrer=[None, "https://Example.com/a", "not a URL", "https://[bad"][number % 4],
        utm_source=["x", None][number % 2],
        format=None,
        status=[200, 304][number % 2],
        event_id=None,
    )


def test_rows_of_a_table_equal_the_rows_of_its_hits() -> None:
    hits = [hit(number) for number in range(60)]
    rows, counts = lake_rows("site", views_table(hits), RECEIVED_US, UserAgentCache(), Verifier())
    expected = [row("site", each, "log", RECEIVED_US) for each in hits]
    assert rows.cast(HOT).cast(pa.schema([pa.field(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type)
                                          for f in HOT])).to_pylist() == [
        dict(zip(HOT.names, each, strict=True)) for each in expected
    ]  # fmt: skip
    traffic, agent = HOT.names.index("traffic"), HOT.names.index("agent")
    assert counts == Counter((each[traffic], each[agent]) for each in expected)


def test_empty_table_has_no_rows() -> None:
    rows, counts = lake_rows("site", views_table([]), RECEIVED_US, UserAgentCache(), Verifier())
    assert (rows.num_rows, counts) == (0, {})
    assert rows.cast(HOT).schema.equals(HOT)
