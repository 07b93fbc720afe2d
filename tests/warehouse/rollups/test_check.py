"""Each wrong number in a rollup is found."""

import itertools
import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.warehouse.rollups.test_writer import files, varied, write
from tests.warehouse.site import Site
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.rollups import check, coverage

LAST_PATH = "/\U0010ffff"
"""Path after all others in the order of bytes."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of a site with a rollup of 60 hits on 18 days."""
    folder = tmp_path_factory.mktemp("original")
    with closing(Site(folder)) as site:
        site.post(*(varied(number) for number in range(60)))
        site.load()
        write(site)
    return folder


@pytest.fixture
def site(original: Path, tmp_path: Path) -> Iterable[Site]:
    with closing(Site.copied(original, tmp_path)) as site:
        yield site


def part(site: Site) -> coverage.Part:
    (part,) = coverage.choose(site.root, files(site)).parts
    return part


def difference(site: Site) -> str | None:
    return check.find_difference(site.database, part(site), files(site))


def change(file: Path, row: int, values: dict[str, Any]) -> None:
    """Change values of one row of a file. The tests do not read the changed sizes in coverage.json."""
    table = pq.read_table(file)
    rows = table.to_pylist()
    rows[row] = {**rows[row], **values}
    pq.write_table(pa.Table.from_pylist(rows, table.schema), file)


def difference_in(name: str, site: Site, checked: coverage.Part) -> str:
    """Return the first difference, which must be in the file of this name."""
    message = check.find_difference(site.database, checked, files(site))
    assert message is not None
    prefix = f"{checked.rollup.folder / name} is wrong "
    assert message.startswith(prefix)
    return message.removeprefix(prefix)


def changed(site: Site, name: str, row: int, **values: Any) -> str:
    """Change a row of a file, and return the first difference in the file."""
    checked = part(site)
    change(checked.rollup.folder / name, row, values)
    return difference_in(name, site, checked)


def test_right_rollup_has_no_difference(site: Site) -> None:
    assert difference(site) is None


def test_valid_days_of_an_older_rollup_and_new_files_have_no_difference(site: Site) -> None:
    site.post(*(varied(number) for number in range(60)))
    site.load()
    site.table(HITS_TABLE).delete("date = '2026-09-01'")
    assert not part(site).is_whole
    assert difference(site) is None


@pytest.mark.parametrize("column", ["human_beacon", "human_server", "human_log", "ai_log", "bot_beacon"])
def test_wrong_month_total_is_found(site: Site, column: str) -> None:
    assert changed(site, "paths.parquet", 3, **{column: 1_000}) == f"1 time, the first: Site 3 {column}"


def test_renamed_path_is_found(site: Site) -> None:
    checked = part(site)
    last = pq.read_metadata(checked.rollup.paths).num_rows - 1
    change(checked.rollup.paths, last, {"path": LAST_PATH})
    assert "the first: site-2 " in difference_in("days.parquet", site, checked)


def test_path_out_of_order_is_found(site: Site) -> None:
    assert changed(site, "paths.parquet", 0, path=LAST_PATH) == "1 time, the first: Site /é1"


def test_wrong_views_of_a_day_are_found_although_the_totals_fit(site: Site) -> None:
    """Exchange the views of two days of one path and source."""
    checked = part(site)
    rows = pq.read_table(checked.rollup.days).to_pylist()
    first, second = next(
        (one, two)
        for one, a in enumerate(rows)
        for two, b in enumerate(rows)
        if (a["project_id"], a["path_id"], a["source"]) == (b["project_id"], b["path_id"], b["source"])
        and a["day"] < b["day"]
        and a["human"] != b["human"]
    )
    change(checked.rollup.days, second, {"human": rows[first]["human"]})
    change(checked.rollup.days, first, {"human": rows[second]["human"]})
    path = pq.read_table(checked.rollup.paths)["path"][rows[first]["path_id"]].as_py()
    assert re.fullmatch(
        rf"2 times, the first: {rows[first]['project_id']} \d+ \S+ human {re.escape(path)}",
        difference_in("days.parquet", site, checked),
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        *((each, {"views": 9}) for each in ("referrerHost", "utmSource", "browser", "format", "status", "rule")),
        # The columns of all dimensions are compared by one query, which differs for the agents' quarters of an hour.
        *itertools.product(
            ("total", "quarter", "agentQuarter"), ({"views": 9}, {"value": "other"}, {"agent": "other"}, {"day": 30})
        ),
    ],
)
def test_wrong_row_of_a_dimension_is_found(site: Site, dimension: str, values: dict[str, Any]) -> None:
    rows = pq.read_table(part(site).rollup.dimensions)["dimension"].to_pylist()
    message = changed(site, "dimensions.parquet", rows.index(dimension), **values)
    assert f", the first: {dimension} " in message


@pytest.mark.parametrize(
    "values",
    [
        {"views": 9},
        {"agent": "other"},
        {"operator": "other"},
        {"purpose": None},
        {"day": 30},
        {"path_id": 99},
        {"source": 2},
        {"traffic": 0},
    ],
)
def test_wrong_row_of_an_agent_is_found(site: Site, values: dict[str, Any]) -> None:
    rows = pq.read_table(part(site).rollup.agent_paths).to_pylist()
    row = next(n for n, each in enumerate(rows) if {**each, **values} != each and each["traffic"] == 1)
    assert ", the first: Site " in changed(site, "agent_paths.parquet", row, **values)


@pytest.mark.parametrize("values", [{"quarter": 95}, {"day": 30}, {"path_id": 99}, {"utm_source": "other"}])
def test_wrong_page_view_is_found(site: Site, values: dict[str, Any]) -> None:
    assert ", the first: Site " in changed(site, "path_views.parquet", 0, **values)


@pytest.mark.parametrize("column", ["source", "agent", "browser", "status", "rule"])
def test_wrong_profile_is_found(site: Site, column: str) -> None:
    checked = part(site)
    change(checked.rollup.profiles, 0, {column: "other"})
    assert "the first: " in difference_in("path_views.parquet", site, checked)


def test_unknown_dimension_is_found(site: Site) -> None:
    assert changed(site, "dimensions.parquet", 0, dimension="weather") == "1 time, the first: weather"
