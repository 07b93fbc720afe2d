"""A filter's SQL condition selects the cells that a reader of its definition expects."""

from datetime import date

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rounds import rounds
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period

CONNECTION = duckdb.connect()
COLUMNS = ("path", "traffic", "agent", "operator", "purpose", "verification", "sources", "status", "utmSource", "day")
BEACON, UNCONFIRMED_LOG = 1, 4 << 6 * 3
AI_LOG, AI_MARKDOWN_LOG, BOT_SERVER, MARKDOWN_LOG = 4 << 6 * 5, 32 << 6 * 5, 2 << 6 * 6, 32 << 6 * 4
FIRST, SECOND = date(2026, 9, 15), date(2026, 9, 16)
CELLS = [
    ("/a", "human", None, None, None, None, BEACON, "200", "mail", FIRST),
    ("/a/b", "ai", "GPTBot", "OpenAI", "training", "verified", AI_LOG, "200", None, FIRST),
    ("/ab", "ai", "ClaudeBot", "Anthropic", "data", "not_checked", AI_MARKDOWN_LOG, None, None, FIRST),
    ("/b", "bot", "Googlebot", None, None, "not_checked", BOT_SERVER, "304", None, SECOND),
    ("/md", "human", None, None, None, None, MARKDOWN_LOG, None, None, SECOND),
]
TEXTS = st.text(max_size=4) | st.text("a\x7f\x80\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=4)


def selected(filters: Filters, rows: pa.Table) -> list[str]:
    """Return the paths of the rows that match."""
    condition, values = filters.condition()
    with CONNECTION.cursor() as cursor:
        cursor.register("rows", rows)
        return [path for (path,) in cursor.execute(f"SELECT path FROM rows WHERE {condition}", values).fetchall()]


def starting(policy: str, day: date = date.min) -> tuple[Period, ...]:
    return (Period(day, policy),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ["/a", "/a/b", "/ab", "/b", "/md"]),
        (Filters(path="/a"), ["/a"]),
        (Filters(path="/a*"), ["/a", "/a/b", "/ab"]),
        (Filters(path="/a/*"), ["/a/b"]),
        (Filters(path="*b*"), ["/a/b", "/ab", "/b"]),
        (Filters(path="**"), ["/a", "/a/b", "/ab", "/b", "/md"]),
        (Filters(traffic="ai"), ["/a/b", "/ab"]),
        (Filters(agent="GPTBot"), ["/a/b"]),
        (Filters(operator="Anthropic"), ["/ab"]),
        (Filters(purpose="training"), ["/a/b"]),
        (Filters(source="log"), ["/a/b", "/ab", "/md"]),
        (Filters(verification="not_checked"), ["/ab", "/b"]),
        (Filters(status="200", utmSource="mail"), ["/a"]),
        (Filters(path="/a*", traffic="ai", purpose="data"), ["/ab"]),
        (Filters(agent="' OR true --"), []),
        (Filters(starting("beacon_only")), ["/a"]),
        (Filters(starting("log_only")), ["/a/b", "/ab", "/b", "/md"]),
        (Filters(starting("beacon_people_log_machines")), ["/a", "/a/b", "/ab", "/b", "/md"]),
        (Filters(starting("beacon_only", SECOND)), ["/a", "/a/b", "/ab"]),
        (Filters(starting("log_only", SECOND), source="server"), ["/b"]),
        (Filters((*starting("log_only"), *starting("beacon_only", SECOND)), path="/*"), ["/a/b", "/ab"]),
    ],
)
def test_cells_that_match_all_filters_and_the_policy_are_selected(filters: Filters, expected: list[str]) -> None:
    cells = [dict(zip(COLUMNS, cell, strict=True)) for cell in CELLS]
    assert selected(filters, pa.Table.from_pylist(cells)) == expected


@settings(max_examples=rounds(300))
@given(st.lists(TEXTS), TEXTS)
def test_prefix_selects_the_paths_that_start_with_it_and_a_part_those_that_contain_it(
    paths: list[str], text: str
) -> None:
    rows = pa.table({"path": pa.array(paths, pa.string())})
    if not text.startswith("*"):
        assert sorted(selected(Filters(path=f"{text}*"), rows)) == sorted(
            path for path in paths if path.startswith(text)
        )
    assert sorted(selected(Filters(path=f"*{text}*"), rows)) == sorted(path for path in paths if text in path)


def test_filters_are_those_with_a_value() -> None:
    filters = Filters(agent=None, source="log", path="/a")
    assert filters.fields == {"path": "/a", "source": "log"}
    assert (filters["agent"], filters["source"], Filters() == Filters(path=None)) == (None, "log", True)
    policy = starting("log_only")
    assert filters.but(source=None, policy=policy) == Filters(policy, path="/a")
    assert Filters(policy).columns == {"sources", "day"}
