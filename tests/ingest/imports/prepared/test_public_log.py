"""Evidence in a public access log: 10,000 lines of semicomplete.com of May 2015.

`tests/data/access-2015.log.gz` is `apache_logs` of https://github.com/elastic/examples (Apache License 2.0), with an
address of the network 198.18.0.0/15 in place of each address.
"""

import gzip
import re
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.hits.row import Site as ProjectSite
from ingest.imports.importer import DEFAULTS, Options
from tests.ingest.imports.prepared.test_asset_loads import run_import
from tests.warehouse.site import ROOT, Site
from warehouse.columns import evidence
from warehouse.tables import ASSET_LOADS_TABLE, HITS_TABLE

pytestmark = pytest.mark.long
LOG = ROOT / "tests/data/access-2015.log.gz"
LINE = re.compile(r'^(\S+) \S+ \S+ \[([^\]]+)\] "GET ([^ ?]+)\S* [^"]*" \d+ \S+ "[^"]*" "(.*)"$')
ORIGINS = Options(site=ProjectSite(frozenset(["semicomplete.com", "www.semicomplete.com"])))


def people_of(folder: Path, options: Options, columns: str = "evidence, user_agent") -> list[tuple[str, str]]:
    """Return columns of each view by people of the log."""
    site = Site(folder)
    run_import(site, tuple(gzip.decompress(LOG.read_bytes()).splitlines()), options=options)
    for name, spec in {"hits": HITS_TABLE, "loads": ASSET_LOADS_TABLE}.items():
        site.database.register(name, pa.Table.from_pylist(site.stored(spec)))
    rows = evidence.joined("hits", f"({evidence.of_visitors('hits', 'loads')})")
    views = site.database.sql(f"SELECT {columns} FROM {rows} WHERE traffic = 'human'").fetchall()
    site.close()
    return views


def test_evidence_of_a_public_log_is_as_documented(tmp_path: Path) -> None:
    text = " ".join((ROOT / "docs/data.md").read_text().split())
    known, unknown = (people_of(tmp_path / name, of) for name, of in {"known": ORIGINS, "unknown": DEFAULTS}.items())
    counts, without_origins = (Counter(each for each, _ in views) for views in (known, unknown))
    share = f"{100 * counts['none'] / len(known):.0f} %"
    assert f"are {len(known):,} views by people: {counts['assets']} have the evidence `assets`, " in text
    assert f"{counts['navigation']} `navigation` and {counts['none']} ({share}) `none`;" in text
    assert f"without allowed origins, {without_origins['none']} have none" in text
    assert without_origins == {"assets": counts["assets"], "none": len(known) - counts["assets"]}
    agents = Counter(agent for each, agent in known if each == "none")
    assert f"of {len(agents)}: | user agent" in text
    shown = re.findall(r"\| `(Mozilla[^`]+)` \| (\d+) \|", text)
    assert shown == [(agent, str(views)) for agent, views in agents.most_common(5)]


def test_visitors_and_visits_of_a_public_log_hardly_depend_on_the_hour_at_which_a_day_begins(tmp_path: Path) -> None:
    stored = {*people_of(tmp_path / "known", DEFAULTS, "epoch(ts)::BIGINT, path, user_agent, visitor")}
    people, readers = {row[:3] for row in stored}, defaultdict(list)
    for line in gzip.decompress(LOG.read_bytes()).decode().splitlines():
        if match := LINE.match(line):
            address, time, page, agent = match.groups()
            at, path = datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z"), re.sub(r"(/index\.html?)?/*$", "", page) or "/"
            if (round(at.timestamp()), path, agent) in people:
                readers[address, agent].append(at)

    def counts(hour: int) -> tuple[int, int]:
        visitors = visits = 0
        for times in readers.values():
            days = [(each - timedelta(hours=hour)).date() for each in sorted(times)]
            gaps = [after - before > timedelta(minutes=30) for before, after in pairwise(sorted(times))]
            visitors += len({*days})
            visits += 1 + sum(gap or day != other for gap, day, other in zip(gaps, days, days[1:], strict=False))
        return visitors, visits

    visitors, visits = zip(*map(counts, range(24)), strict=True)
    assert visitors[0] == len({row[3] for row in stored})  # each UTC day has other numbers
    text = " ".join((ROOT / "docs/decisions.md").read_text().split())
    assert f" {visitors[0]} visitors and {visits[0]:,} visits of people: with days that begin at another hour, " in text
    assert f" {min(visitors)} to {max(visitors)} visitors and as many visits" in text
    assert {*visits} == {visits[0]}
