"""Page views by columns are the rows that each would be alone."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow as pa

from ingest import page_views
from ingest.hit import Hit
from ingest.page_view import row
from ingest.page_views import Kinds, of_hits
from ingest.processes import Kind, Told, told
from ingest.reader import kinds as kinds_of
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


def of(kinds: Kinds, user_agents: pl.Series) -> list[Kind]:
    numbers, known = kinds.of(user_agents)
    assert len(set(known)) == len(known)
    return [known[number] for number in numbers.to_pylist()]


def test_user_agent_of_one_memory_is_asked_for_once() -> None:
    asked = Asked()
    kinds = Kinds(asked)
    first = pl.Series(AGENTS, dtype=pl.Categorical(pl.Categories.random()))
    assert of(kinds, first) == kinds_of(AGENTS)
    more = pl.Series(["curl/1", *AGENTS[::-1], "curl/2"], dtype=first.dtype)
    assert of(kinds, more) == kinds_of(more.to_list())
    assert asked.agents == [*AGENTS, "curl/1", "curl/2"]


def test_user_agents_of_another_memory_have_other_numbers_and_are_told_anew() -> None:
    kinds = Kinds()
    memories = [pl.Categorical(pl.Categories.random()) for _ in range(2)]
    for agents in (AGENTS, AGENTS[::-1], AGENTS[2:], [], AGENTS[:1]):
        for memory in memories:
            assert of(kinds, pl.Series(agents, dtype=memory)) == kinds_of(agents)


def test_threads_are_told_alike_and_of_none_twice() -> None:
    asked = Asked()
    kinds = Kinds(asked)
    memory = pl.Categorical(pl.Categories.random())
    some = [f"curl/{number}" for number in range(300)]
    parts = [pl.Series(some[first : first + 60], dtype=memory) for first in range(0, 240, 5)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: of(kinds, part), parts))
    assert found == [kinds_of(part.to_list()) for part in parts]
    assert len(asked.agents) == len(set(asked.agents))
