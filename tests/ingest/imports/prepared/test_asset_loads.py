"""An import stores the assets that visitors loaded, by day and visitor."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import LedgerIncomplete
from ingest.imports.importer import DEFAULTS, Options, import_logs
from ingest.visitors.salts import NO_SALTS, open_salts
from tests.ingest.formats.test_clf import FIREFOX, line
from tests.warehouse.site import DAY, NOON, SECRET, TODAY, Site
from warehouse.batch.driver import THIS_PROCESS, Executor
from warehouse.tables import ASSET_LOADS_TABLE, HITS_TABLE

GPTBOT = b"Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"
READER, OTHER = {"host": b"203.0.113.7"}, {"host": b"203.0.113.8"}
LOG = (
    line(b"GET /a HTTP/1.1", **READER),
    line(b"GET /style.css HTTP/1.1", **READER),
    line(b"GET /app.js?v=2 HTTP/1.1", **READER, status=b"304"),
    line(b"GET /photo.jpg HTTP/1.1", **READER, status=b"206"),
    line(b"GET /photo.jpg HTTP/1.1", **READER, status=b"204"),
    line(b"GET /none.css HTTP/1.1", **READER, status=b"404"),
    line(b"GET /style.css HTTP/1.1", **READER, time=b"16/Sep/2026:00:00:00 +0000"),
    line(b"GET /a HTTP/1.1", **OTHER),
    line(b"GET /favicon.ico HTTP/1.1", **OTHER),
    line(b"GET /style.css HTTP/1.1", **OTHER, user_agent=GPTBOT),
    line(b"GET /style.css HTTP/1.1", host=b"unknown"),
)


def run_import(
    site: Site,
    lines: tuple[bytes, ...],
    executor: Executor | None = None,
    now: Callable[[], float] = (NOON + DAY).timestamp,
    *,
    is_on: bool = True,
    options: Options = DEFAULTS,
) -> Any:
    log = site.root.parent / "access.log"
    log.write_bytes(b"".join(each + b"\n" for each in lines))
    with closing(open_salts("sqlite:///", log.parent, now=now) if is_on else NO_SALTS) as salts:
        return import_logs(
            site.hot, site.root, "site", [str(log)], SECRET, now, options, executor=executor, salts=salts
        )


def stored(site: Site) -> Counter[tuple[Any, Any]]:
    loads: Counter[tuple[Any, Any]] = Counter()
    for row in site.stored(ASSET_LOADS_TABLE):
        loads[row["date"], row["visitor"]] += row["loads"]
    return loads


@pytest.mark.long
@pytest.mark.parametrize(("executor", "times"), [(None, 1), (None, 600), (THIS_PROCESS, 600)])  # 600: in staged files
def test_loads_have_the_visitor_of_their_views(tmp_path: Path, executor: Executor | None, times: int) -> None:
    site = Site(tmp_path)
    summary = run_import(site, LOG * times, executor)
    reader = {row["visitor"] for row in site.stored(HITS_TABLE) if row["user_agent"] == FIREFOX}
    loads = stored(site)
    today = {visitor: count for (day, visitor), count in loads.items() if day == TODAY}
    assert len(reader) == 2
    assert today.pop(None) == times  # of an unknown address
    assert [today.pop(visitor) for visitor in reader & set(today)] == [3 * times]
    assert [*today.values()] == [times]  # of an AI agent, which a later release may classify as a person
    assert sum(loads.values()) == 6 * times
    assert (summary.page_views, summary.skipped) == (2 * times, {"not_a_page": 8 * times, "status": times})
    site.close()


def test_no_load_is_stored_if_visitors_are_not_counted(tmp_path: Path) -> None:
    site = Site(tmp_path)
    run_import(site, LOG, is_on=False)
    assert (len(site.stored(HITS_TABLE)), stored(site)) == (2, Counter())
    site.close()


def test_loads_before_the_ledger_are_refused_without_a_page_beside_them(tmp_path: Path) -> None:
    site = Site(tmp_path)
    after_us = round((NOON + DAY).timestamp() * 1_000_000)
    with pytest.raises(LedgerIncomplete):
        run_import(site, LOG[1:2], options=Options(ledger_from_us=after_us))
    assert stored(site) == Counter()
    site.close()
