"""The programs that the reports are compared with: they count the same views as Python does over the same rows."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from benchmarks.lake import Lake
from benchmarks.peers import clickhouse, goatcounter
from benchmarks.peers.clickhouse import ClickHouse
from benchmarks.peers.goatcounter import GoatCounter
from benchmarks.peers.raw import Raw
from benchmarks.peers.report import Peer, Range

pytestmark = pytest.mark.night

RANGE = Range(date(2026, 9, 3), date(2026, 10, 2))


def raw(lake: Lake, folder: Path) -> Peer:
    return Raw(lake.data)


def goatcounter_peer(lake: Lake, folder: Path) -> Peer:
    goatcounter.build(lake.data, folder / "goatcounter.sqlite")
    return GoatCounter(folder / "goatcounter.sqlite")


def clickhouse_peer(lake: Lake, folder: Path) -> Peer:
    if not clickhouse.PYTHON.exists():
        pytest.skip("make .venv/.peers installs ClickHouse")
    clickhouse.build(lake.data, folder / "clickhouse")
    return ClickHouse(folder / "clickhouse")


@pytest.mark.parametrize("create", [raw, goatcounter_peer, clickhouse_peer])
def test_peer_counts_views_of_people_and_ai(
    create: Callable[[Lake, Path], Peer], generated: Lake, tmp_path: Path
) -> None:
    views = counted(generated)
    with closing(create(generated, tmp_path)) as peer:
        _, page = peer.page(RANGE)
        assert [total for _, total in page] == sorted(views.values(), reverse=True)[:50]
        assert all(views[path] == total for path, total in page)
        assert peer.series(RANGE)[1] == views.total()


def counted(lake: Lake) -> Counter[str]:
    """Return the views of RANGE by path."""
    rows = ds.dataset(lake.data / "lake" / "hits", exclude_invalid_files=True).to_table(
        ["path", "ts"], filter=(pc.field("project_id") == "bench") & (pc.field("traffic") != "bot")
    )
    in_range = (RANGE.start <= ts.date() < RANGE.end for ts in rows["ts"].to_pylist())
    return Counter(path for path, is_in in zip(rows["path"].to_pylist(), in_range, strict=True) if is_in)
