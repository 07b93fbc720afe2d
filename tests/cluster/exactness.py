"""Comparison of all that is stored with the hits that are expected."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import httpx
from deltalake import DeltaTable

from tests.cluster import readers
from tests.cluster.cluster import Cluster
from tests.cluster.expected import Expected

TIMEOUT_S = 300


def faults(cluster: Cluster, expected: Expected) -> list[str]:
    """Return the failed exports, and the differences of both tables and of each node's export from the hits sent."""
    errors = []
    for node in cluster.nodes:
        answer = httpx.get(f"{node.url}/views", headers={**node.auth, "Accept": "text/csv"}, timeout=TIMEOUT_S)
        if answer.status_code != 200:
            errors.append(f"the export of {node.name} was answered {answer.status_code}: {answer.text[:300]}")
            continue
        errors += [f"the export of {node.name}: {each}" for each in expected.differences(readers.totals(answer.text))]
        with closing(readers.connect(node.data, dict(node.environ))) as database:
            for name, query in (
                ("hits", "SELECT path, count(*) FROM hits GROUP BY path"),
                ("daily_views", "SELECT path, sum(views) FROM daily_views GROUP BY path"),
            ):
                stored = {path: int(count) for path, count in database.sql(query).fetchall()}
                errors += [f"{name} on {node.name}: {each}" for each in expected.differences(stored)]
    return errors


def faults_of_lake(cluster: Cluster, expected: Expected) -> list[str]:
    """Load the hot log; return what `doctor` finds, and the differences of `hits`, read by deltalake alone."""
    errors = []
    for node in cluster.nodes:
        for command in ("flush", "doctor"):
            process = cluster.run(node, command)
            if (status := process.forked.wait(300)) != 0:
                errors.append(f"{process.name} ended with {status}: {process.text[-1000:]}")
    rows = DeltaTable(f"{_lake(cluster)}/hits").to_pyarrow_table(columns=["path"])
    stored = Counter(rows["path"].to_pylist())
    return errors + [f"hits in the lake: {each}" for each in expected.differences(stored)]


def tracebacks(cluster: Cluster) -> list[str]:
    """Return the end of the first traceback of each log: an error that no module expects."""
    errors = []
    for log in (log for node in cluster.nodes for log in node.logs):
        text = log.read_text(errors="replace")
        if (at := text.find("Traceback (most recent call last)")) >= 0:
            end = text[at:].partition('"requestId"')[0][-2000:]
            errors.append(f"{log.name} has a traceback: {end}")
    return errors


def _lake(cluster: Cluster) -> str | Path:
    return cluster.nodes[0].environ.get("READERSHIP_LAKE", cluster.folder / "lake")
