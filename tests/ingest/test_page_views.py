"""Page views by columns are the rows that each would be alone."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest

from ingest import page_views
from ingest.hit import Hit
from ingest.page_view import row
from ingest.page_views import Kinds, of_hits
from ingest.processes import Told, told
from warehouse.schema import HOT

RECEIVED_US = 1_800_000_000_000_000
AGENTS = [
    "GPTBot/1.3",
    "",
    "curl/8.5",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7) Safari/604.1",
    "x" * 600,
]


def hit(number: int) -> Hit:
    return Hit(
        path=f"/{number % 3}",
        ts_us=RECEIVED_US - number,
        user_agent=AGENTS[number % 5],
        referrer=[None, "https://Example.com/a", "not a URL", "https://[bad"][number % 4],
        utm_source=["x", None][number % 2],
        format=None,
        status=[200, 304][number % 2],
        event_id=None,
    )


def test_rows_are_those_of_each_hit_alone() -> None:
    hits = [hit(number) for number in range(60)]
    rows, readers = page_views.page_views("site", of_hits(hits), RECEIVED_US, Kinds())
    alone = [row("site", each, "log", RECEIVED_US) for each in hits]
    assert rows.cast(HOT).cast(pa.schema([pa.field(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type)
                                          for f in HOT])).to_pylist() == [
        dict(zip(HOT.names, each, strict=True)) for each in alone
    ]  # fmt: skip
    traffic, agent = HOT.names.index("traffic"), HOT.names.index("agent")
    assert readers == Counter((each[traffic], each[agent]) for each in alone)


def test_no_hits_are_no_rows() -> None:
    rows, readers = page_views.page_views("site", of_hits([]), RECEIVED_US, Kinds())
    assert (rows.num_rows, readers) == (0, {})
    assert rows.cast(HOT).schema.equals(HOT)


class Asked:
    """Tells user agents, and keeps which."""

    def __init__(self) -> None:
        self.agents: list[str] = []

    def __call__(self, user_agents: Sequence[str]) -> Told:
        self.agents += user_agents
        return told(user_agents)


def test_user_agent_is_asked_for_once_unless_it_is_too_long_to_remember() -> None:
    asked = Asked()
    kinds = Kinds(asked)
    first = kinds.of(AGENTS)
    assert kinds.of(AGENTS) == first
    assert asked.agents == [*AGENTS, AGENTS[-1]]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_views, "KNOWN_USER_AGENTS_MAX", 3)
    asked = Asked()
    kinds = Kinds(asked)
    numbers, known = kinds.of(["a", "b"])
    assert kinds.of(["c", "d"])[0] == kinds.of(["c", "d"])[0]
    assert asked.agents == ["a", "b", "c", "d"]
    assert [known[number] for number in numbers] == [known[kinds.of(["a"])[0][0]]] * 2
    assert asked.agents == ["a", "b", "c", "d", "a"]
