"""Evidence in a public access log: 10,000 lines of semicomplete.com of May 2015.

`tests/data/access-2015.log.gz` is `apache_logs` of https://github.com/elastic/examples (Apache License 2.0), with an
address of the network 198.18.0.0/15 in place of each address.
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
ORIGINS = Options(site=ProjectSite(frozenset(["semicomplete.com", "www.semicomplete.com"])))


def people_of(folder: Path, options: Options) -> list[tuple[str, str]]:
    """Return the evidence and the user agent of each view by people of the log."""
    site = Site(folder)
    run_import(site, tuple(gzip.decompress(LOG.read_bytes()).splitlines()), options=options)
    for name, spec in {"hits": HITS_TABLE, "loads": ASSET_LOADS_TABLE}.items():
        site.database.register(name, pa.Table.from_pylist(site.stored(spec)))
    rows = evidence.joined("hits", f"({evidence.of_visitors('hits', 'loads')})")
    views = site.database.sql(f"SELECT evidence, user_agent FROM {rows} WHERE traffic = 'human'").fetchall()
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
