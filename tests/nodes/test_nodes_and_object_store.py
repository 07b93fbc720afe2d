"""Two nodes with one PostgreSQL database and one lake in an object store: each answers for both."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.running import Running, readership
from tests.stores.postgresql import new_database

HUMAN = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"


@pytest.fixture
def nodes(bucket: str, postgresql: str, tmp_path: Path) -> Iterator[list[Running]]:
    environ = {
        "READERSHIP_LAKE": f"{bucket}/lake",
        "READERSHIP_DATABASE_URL": new_database(postgresql),
        "READERSHIP_JOBS_AT_ONCE": "0",
    }
    first = Running(tmp_path / "first", environ=environ).start()
    try:
        second = Running(tmp_path / "second", environ=environ, key=first.key).start()
        yield [first, second]
        assert second.stop() == 0
    finally:
        assert first.stop() == 0


def run(node: Running, *arguments: str) -> int:
    """Return the exit status of a command on a node."""
    return readership("--data", str(node.data), *arguments, env={**os.environ, **node.environ}).returncode


@pytest.mark.long
def test_hit_counts_once_and_is_in_the_next_export_of_each_node(nodes: list[Running]) -> None:
    first, second = nodes
    rounds = (first, second, "flush"), (second, first, "compact")
    for number, (writer, reader, command) in enumerate(rounds, start=1):
        hits = [{"path": f"/{number}", "userAgent": HUMAN}, {"path": "/event", "userAgent": HUMAN, "eventId": "e"}]
        assert writer.post(hits).json()["accepted"] == (2 if writer is first else 1)
        expected = {"/event": 1, **{f"/{each}": 1 for each in range(1, number + 1)}}
        for _ in range(2):
            for node in (reader, writer):
                assert {each["path"]: each["total"] for each in node.get()["views"]} == expected
            assert run(writer, command) == 0
    assert run(second, "doctor") == 0
    assert not (first.data / "hot.sqlite").exists()
