"""Evidence in a public access log: 10,000 lines of semicomplete.com of May 2015.

`tests/data/access-2015.log.gz` is `apache_logs` of https://github.com/elastic/examples (Apache License 2.0), with a number of the
network 198.18.0.0/15 in place of each address.
"""

import gzip
import re
from collections import Counter
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
ORIGINS = frozenset(["semicomplete.com", "www.semicomplete.com"])


def people_of(folder: Path, options: Options) -> list[tuple[str, str]]:
    """Return the evidence and the user agent of each view by people of the log."""
    site = Site(folder)
    run_import(site, tuple(gzip.decompress(LOG.read_bytes()).splitlines()), options=options)
    tables = {
        name: pa.Table.from_pylist(site.stored(spec))
        for name, spec in (("hits", HITS_TABLE), ("loads", ASSET_LOADS_TABLE))
    }
    for name, table in tables.items():
        site.database.register(name, table)
    rows = evidence.joined("hits", f"({evidence.of_visitors('hits', 'loads')})")
    views = site.database.sql(f"SELECT evidence, user_agent FROM {rows} WHERE traffic = 'human'").fetchall()
    site.close()
    return views


def test_evidence_of_a_public_log_is_as_documented(tmp_path: Path) -> None:
    text = " ".join((ROOT / "docs/data.md").read_text().split())
    known, unknown = (
        people_of(tmp_path / name, each)
        for name, each in (("origins", Options(site=ProjectSite(ORIGINS))), ("none", DEFAULTS))
    )
    of_kinds, without_origins = Counter(each for each, _ in known), Counter(each for each, _ in unknown)
    share = f"{100 * of_kinds['none'] / len(known):.0f} %"
    assert (
        f"{len(known):,} views by people: {of_kinds['assets']} have the evidence `assets`, {of_kinds['navigation']} `navigation` and"
        f" {of_kinds['none']} ({share}) `none`; without allowed origins, {without_origins['none']} have none"
    ) in text
    agents = Counter(agent for each, agent in known if each == "none").most_common(5)
    assert re.findall(r"\| `(Mozilla[^`]+)` \| (\d+) \|", text) == [(agent, str(views)) for agent, views in agents]
