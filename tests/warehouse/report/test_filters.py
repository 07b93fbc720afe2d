"""A filter's SQL condition selects the rows that a reader of its definition expects."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.columns.filters import Filters
from warehouse.report.results import Counts

CONNECTION = duckdb.connect()
READER = {"agent": None, "operator": None, "purpose": None, "verification": None}
ROWS = [
    {**READER, "path": "/a", "traffic": "human", "source": "beacon"},
    {
        "path": "/a/b",
        "traffic": "ai",
        "agent": "GPTBot",
        "operator": "OpenAI",
        "purpose": "training",
        "verification": "verified",
        "source": "log",
    },
    {
        **READER,
        "path": "/ab",
        "traffic": "ai",
        "agent": "ClaudeBot",
        "operator": "Anthropic",
        "purpose": "data",
        "source": "log",
    },
    {**READER, "path": "/b", "traffic": "bot", "agent": "Googlebot", "verification": "not_checked", "source": "server"},
]
TEXTS = st.text(max_size=4) | st.text("a\x7f\x80\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=4)


def selected(filters: Filters, rows: pa.Table) -> list[str]:
    """Return the paths of the rows that match."""
    condition, values = filters.condition()
    cursor = CONNECTION.cursor()
    cursor.register("rows", rows)
    return [path for (path,) in cursor.execute(f"SELECT path FROM rows WHERE {condition}", values).fetchall()]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), ["/a", "/a/b", "/ab", "/b"]),
        (Filters(path="/a"), ["/a"]),
        (Filters(path="/a*"), ["/a", "/a/b", "/ab"]),
        (Filters(path="/a/*"), ["/a/b"]),
        (Filters(path="*"), ["/a", "/a/b", "/ab", "/b"]),
        (Filters(traffic="ai"), ["/a/b", "/ab"]),
        (Filters(agent="GPTBot"), ["/a/b"]),
        (Filters(operator="Anthropic"), ["/ab"]),
        (Filters(purpose="training"), ["/a/b"]),
        (Filters(source="log"), ["/a/b", "/ab"]),
        (Filters(verification="not_checked"), ["/ab", "/b"]),
        (Filters(verification="verified"), ["/a/b"]),
        (Filters(path="/a*", traffic="ai", purpose="data"), ["/ab"]),
        (Filters(agent="' OR true --"), []),
    ],
)
def test_rows_that_match_all_filters_are_selected(filters: Filters, expected: list[str]) -> None:
    assert selected(filters, pa.Table.from_pylist(ROWS)) == expected


@given(st.lists(TEXTS), TEXTS)
def test_prefix_selects_the_paths_that_start_with_it(paths: list[str], prefix: str) -> None:
    rows = pa.table({"path": pa.array(paths, pa.string())})
    expected = [path for path in paths if path.startswith(prefix)]
    assert sorted(selected(Filters(path=f"{prefix}*"), rows)) == sorted(expected)


@given(TEXTS, TEXTS)
def test_bounds_of_a_path_contain_the_paths_that_match(path: str, pattern: str) -> None:
    bounds = Filters(path=pattern).path_bounds
    assert bounds is not None
    first, after = bounds
    is_match = path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
    assert (first <= path and (after is None or path < after)) == is_match


def test_filters_are_empty_only_without_a_value() -> None:
    assert Filters().is_empty
    assert Filters().path_bounds is None
    assert not Filters(source="log").is_empty
    assert Filters(path="/a", source="log").fields == {"path": "/a", "source": "log"}


def test_bots_are_not_part_of_the_total() -> None:
    assert Counts(human=3, ai=2, bot=9).total == 5
