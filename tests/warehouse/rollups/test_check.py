"""Each wrong number in a rollup is found."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.rounds import seeded, some
from tests.warehouse.rollups.counted import CUBES, VISITORS, WITHOUT_MONTHS
from tests.warehouse.rollups.test_writer import MONTH, files, varied, write
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import Row, Site, event, view
from warehouse.maintenance.rollups import files_beside
from warehouse.rollups import catalog, check
from warehouse.tables import HITS_TABLE

UNUSED_DAY = 30
"""Day of the month without a hit, whose cells a reader of the whole rollup would count."""
COLUMNS = {**CUBES, "visitors": VISITORS}
MEASURES = {
    **dict.fromkeys(CUBES, ("views", "identified")),
    "visitors": ("visitors", "visits", "bounces", "visit_seconds", "visit_views"),
}
Change = Callable[[list[Row], int], list[Row]]


def prepare(site: Site) -> None:
    """Write a rollup of 60 hits on 18 days."""
    site.post(*(varied(number) for number in range(60)))
    site.load()
    write(site)


def part(site: Site) -> catalog.Part:
    (part,) = catalog.choose(site.root, files(site)).parts
    return part


def of_row(**changes: object) -> Change:
    """Return the change of some values of a row."""
    return lambda rows, row: [*rows[:row], {**rows[row], **changes}, *rows[row + 1 :]]


def removed(rows: list[Row], row: int) -> list[Row]:
    return rows[:row] + rows[row + 1 :]


def added(rows: list[Row], row: int) -> list[Row]:
    return [*rows, {**rows[row], "project_id": "new"}]


def exchanged(rows: list[Row], row: int) -> list[Row]:
    """Exchange the days of a row and another one of the same project, which does not change the sums of the month."""
    other = next(
        number
        for number, each in enumerate(rows)
        if each["project_id"] == rows[row]["project_id"]
        and each["day_of_month"] not in {0, rows[row]["day_of_month"]}
        and {**each, "day_of_month": 0} != {**rows[row], "day_of_month": 0}
    )
    days = {row: rows[other]["day_of_month"], other: rows[row]["day_of_month"]}
    return [{**each, "day_of_month": days.get(number, each["day_of_month"])} for number, each in enumerate(rows)]


@pytest.mark.long
def test_right_rollup_has_no_difference(site: Site) -> None:
    assert check.find_difference(site.database, part(site), files(site), {}) is None


@pytest.mark.long
def test_valid_days_of_an_older_rollup_and_new_files_have_no_difference(site: Site) -> None:
    site.post(*(varied(number) for number in range(60)))
    site.load()
    site.table(HITS_TABLE).delete("date = '2026-09-01'")
    assert not part(site).is_whole
    assert check.find_difference(site.database, part(site), files(site), {}) is None


@pytest.mark.long
@pytest.mark.parametrize("cube", COLUMNS)
def test_wrong_missing_and_added_row_of_days_and_of_the_month_are_found(site: Site, cube: str) -> None:
    checked = part(site)
    file = checked.rollup.folder / f"{cube}.parquet"
    table = pq.read_table(file)
    rows = table.to_pylist()
    of_days = next(number for number, row in enumerate(rows) if row["day_of_month"])
    changes = {
        **{
            f"another {name}": of_row(**{name: "other"}) for name in COLUMNS[cube] if name not in {"sources", "quarter"}
        },
        **{f"another {name}": of_row(**{name: 63}) for name in COLUMNS[cube] if name in {"sources", "quarter"}},
        **{f"other {name}": of_row(**{name: 9}) for name in MEASURES[cube]},
        "another project": of_row(project_id="other"),
        "removed": removed,
        "added": added,
    }
    of_day = {"exchanged": exchanged, "unused day": of_row(day_of_month=UNUSED_DAY)}
    changed = {f"{name} of a day": each(rows, of_days) for name, each in {**changes, **of_day}.items()}
    changed["row of an unused day"] = [*rows, {**rows[of_days], "day_of_month": UNUSED_DAY}]
    if cube not in WITHOUT_MONTHS:
        of_month = {name: each for name, each in changes.items() if not name.startswith("another ")}
        changed |= {f"{name} of the month": each(rows, 0) for name, each in of_month.items()}
    for name, wrong in some(seeded(len(changed)), changed.items(), 4):
        pq.write_table(pa.Table.from_pylist(wrong, table.schema), file)
        message = check.find_difference(site.database, checked, files(site), {})
        assert message is not None, name
        assert message.startswith(f"{file} is wrong "), name


@pytest.mark.long
@pytest.mark.parametrize(("visitor", "bounces"), [(1, 0), (2, 1)])
def test_wrong_bounce_is_found_where_events_decide_it(tmp_path: Path, visitor: int, bounces: int) -> None:
    """Change the bounce of a visit without events, and of one whose event makes it active."""
    with closing(Site(tmp_path)) as site:
        site.stage(
            [view(f"/{number}", visitor=number, source="beacon") for number in (1, 2)],
            events=[event(path="/2", visitor=2, source="beacon")],
        )
        site.load()
        beside = files_beside(site.root, MONTH)
        write_rollup(site.root, site.database, MONTH, files(site), beside=beside)
        checked = part(site)
        assert check.find_difference(site.database, checked, files(site), beside) is None
        file = checked.rollup.folder / "visitors.parquet"
        table = pq.read_table(file)
        rows = table.to_pylist()
        [row] = [
            number
            for number, each in enumerate(rows)
            if (each["dimension"], each["value"]) == ("entryPage", f"/{visitor}")
            and each["visits"]
            and each["day_of_month"]
        ]
        assert rows[row]["bounces"] == 1 - bounces
        pq.write_table(pa.Table.from_pylist(of_row(bounces=bounces)(rows, row), table.schema), file)
        message = check.find_difference(site.database, checked, files(site), beside)
        assert message == f"{file} is wrong 1 time, the first: site day 15"


def test_difference_names_the_project_and_the_day(site: Site) -> None:
    checked = part(site)
    file = checked.rollup.folder / "quarters.parquet"
    table = pq.read_table(file)
    rows = table.to_pylist()
    pq.write_table(pa.Table.from_pylist(of_row(views=9)(rows, 0), table.schema), file)
    message = check.find_difference(site.database, checked, files(site), {})
    assert message == f"{file} is wrong 1 time, the first: Site day {rows[0]['day_of_month']}"
