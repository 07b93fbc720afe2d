"""Two nodes lose and repeat no acknowledged hit, whichever process is killed or paused, and whichever store fails.

`python -m tests.cluster.rounds` runs more and longer rounds.
"""

from collections.abc import Iterator

import pytest

from tests.cluster import cluster as clusters
from tests.cluster import exactness, log_imports, outages, rounds
from tests.cluster.cluster import Cluster
from tests.cluster.expected import Expected
from tests.programs import require
from tests.rounds import SEED

pytestmark = pytest.mark.long

ROUND = rounds.Options(clients=3, seed=20261123 + SEED, faults_s=1)
OUTAGE_S, OUTAGE_CLIENTS = 1, 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require("initdb", "setpriv")
    with clusters.running(tmp_path_factory.mktemp("cluster"), 2, is_remote=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def expected() -> Expected:
    """Return the hits of both tests."""
    return Expected()


def test_kills_pauses_and_lost_locks_lose_and_repeat_no_acknowledged_hit(cluster: Cluster, expected: Expected) -> None:
    before = len(expected.certain)
    assert rounds.run(cluster, ROUND, 1, expected).faults == []
    assert len(expected.certain) > before + 2 * log_imports.PATHS
    assert exactness.faults_of_lake(cluster, expected) == []


@pytest.mark.night  # outages on one node: `test_remote_lake`, `test_postgresql`
def test_outage_of_a_store_is_answered_503_and_loses_nothing(cluster: Cluster, expected: Expected) -> None:
    assert outages.run(cluster, expected, outages.kinds(cluster.stores, OUTAGE_S)[:2], OUTAGE_CLIENTS) == []
