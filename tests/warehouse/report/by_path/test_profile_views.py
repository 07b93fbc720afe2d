"""Views of paths by page views of some profiles are those of a plain count."""

import tempfile
from collections import Counter
from itertools import pairwise, product
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from warehouse.blocks import project
from warehouse.blocks.months import DAYS
from warehouse.report.by_path import profile_views

from tests.rounds import rounds
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import ROWS
from tests.warehouse.report.test_path_reports import coverage
from tests.warehouse.site import DAY, NOON, Row, view
from warehouse.columns.filters import Filters
from warehouse.columns.sources import SOURCES, TRAFFIC
from warehouse.control.policy import MARKDOWN
from warehouse.lake.delta_table import File
from warehouse.query.result_cache import ResultCache

STATES = ["verified", "not_checked", "spoofed"]


def is_counted(row: Row, agents: Filters, state: str | None, *, is_markdown: bool) -> bool:
    if row["project_id"] != "site" or any(row[name] != value for name, value in agents.fields.items()):
        return False
    if state is not None and reference.verification(row) != state:
        return False
    if is_markdown:
        return row["traffic"] == "human" and row["format"] in MARKDOWN
    return reference.verification(row) is not None


@settings(max_examples=rounds(40))
@given(
    st.lists(ROWS, max_size=20),
    st.sets(st.integers(1, 31), max_size=3),
    st.sampled_from([Filters(), Filters(agent="GPTBot"), Filters(operator="OpenAI", purpose="training")]),
    st.booleans(),
)
@example([view(traffic="ai"), view(traffic="ai", ts=NOON + DAY)], {NOON.day}, Filters(), False)
def test_views_are_those_of_a_plain_count(
    stored: list[Row], invalid: set[int], agents: Filters, is_markdown: bool
) -> None:
    days = sorted({row["ts"].date().isoformat() for row in stored})
    with tempfile.TemporaryDirectory() as folder:
        covering = coverage(Path(folder), [File("", day, 0, 0) for day in days], stored, set(range(1, 32)), invalid)
        block = project.read(covering.parts, "site")
        for index, part in enumerate(block.parts):
            of_part = [row for row in stored if row["ts"].date().isoformat() in part.days]
            views = profile_views.read(ResultCache(0), block, index, agents, is_markdown=is_markdown)
            for state in [*STATES, None] if is_markdown else STATES:
                read, counted = views.of(state), Counter[tuple[int, str, str, str]]()
                paths, groups = block.paths.take(read.ids).to_pylist(), product(SOURCES, TRAFFIC, range(1, DAYS + 1))
                for (source, traffic, day), (first, end) in zip(groups, pairwise(read.starts.tolist()), strict=True):
                    for path, count in zip(paths[first:end], read.views[first:end].tolist(), strict=True):
                        counted[day, path, source, traffic] += count
                assert counted == Counter(
                    (row["ts"].day, row["path"], row["source"], row["traffic"])
                    for row in of_part
                    if is_counted(row, agents, state, is_markdown=is_markdown)
                )
