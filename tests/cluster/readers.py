"""Readers that compare the tables and the exports all the time."""

import csv
import io
import random
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import httpx

import warehouse
from tests.cluster.expected import Expected
from tests.cluster.processes import Node
from warehouse.database_errors import outage_of

PAUSE_S = 0.1
DIFFERENT = """
WITH h AS (SELECT project_id, date, path, traffic, agent, count(*) AS views FROM hits GROUP BY ALL),
     d AS (SELECT project_id, date, path, traffic, agent, sum(views) AS views FROM daily_views GROUP BY ALL)
SELECT path, h.views, d.views FROM h FULL JOIN d USING (project_id, date, path, traffic, agent)
WHERE h.views IS DISTINCT FROM d.views LIMIT 5
"""


@dataclass
class Readers:
    """Readers of one round. `data` is a data folder of the readers, whose lake has `environ`.

    `reads` counts the comparisons, and the requests that were answered 503 or not at all.
    """

    nodes: Sequence[Node]
    expected: Expected
    prefix: str
    data: Path
    environ: dict[str, str]
    reads: Counter[str] = field(default_factory=Counter)
    stopping: threading.Event = field(default_factory=threading.Event)

    def compare_tables(self) -> None:
        """Compare `hits` with `daily_views` in one snapshot, until `stopping` is set."""
        while not self.stopping.wait(PAUSE_S):
            try:
                with closing(connect(self.data, self.environ)) as database:
                    different = database.sql(DIFFERENT).fetchall()
            except Exception as error:  # noqa: BLE001  # recorded as a fault unless a store is unreachable
                if outage_of(error):
                    self.reads["store unreachable"] += 1
                else:
                    self.expected.fault(f"the tables cannot be read: {type(error).__name__}: {error}")
                continue
            self.reads["tables"] += 1
            if different:
                self.expected.fault(f"hits and daily_views differ (path, hits, views): {different}")

    def compare_exports(self) -> None:
        """Compare an export with the acknowledged hits, and with that of another node at the same moment."""
        chance = random.Random(self.prefix)
        with httpx.Client(timeout=15) as client:
            while not self.stopping.wait(PAUSE_S):
                first, second = chance.sample(self.nodes, 2)
                certain = {path: n for path, n in self.expected.certain.items() if path.startswith(self.prefix)}
                answer = self._get(client, first)
                if answer is None:
                    continue
                exported = totals(answer.text)
                self.reads["exports"] += 1
                if differences := self.expected.differences(exported, certain):
                    self.expected.fault(f"the export of {first.name}: {differences[:5]}")
                same = self._get(client, second, answer.headers["X-As-Of"])
                if same is None:
                    continue
                self.reads["exports of one moment"] += 1
                if totals(same.text) != exported:
                    self.expected.fault(f"{first.name} and {second.name} differ at {answer.headers['X-As-Of']}")

    def _get(self, client: httpx.Client, node: Node, as_of: str = "") -> httpx.Response | None:
        if (url := node.url) is None:
            return None
        query = {"path": f"{self.prefix}/*", "asOf": as_of} if as_of else {"path": f"{self.prefix}/*"}
        try:
            answer = client.get(f"{url}/views", params=query, headers={**node.auth, "Accept": "text/csv"})
        except httpx.TransportError:
            self.reads["no answer"] += 1
            return None
        if answer.status_code == 503 and "Retry-After" in answer.headers:
            self.reads["503"] += 1
            return None
        if answer.status_code != 200:
            self.expected.fault(f"an export of {node.name} was answered {answer.status_code}: {answer.text[:300]}")
            return None
        return answer


def connect(data: Path, environ: dict[str, str]) -> duckdb.DuckDBPyConnection:
    return warehouse.connect(data, environ.get("READERSHIP_LAKE"), environ["READERSHIP_DATABASE_URL"])


def totals(text: str) -> dict[str, int]:
    """Return the total of each path in an export."""
    return {row["path"]: int(row["total"]) for row in csv.DictReader(io.StringIO(text))}
