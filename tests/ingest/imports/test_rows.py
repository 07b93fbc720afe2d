"""Page views by columns are the rows that each would be alone."""

import random
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from ingest.classification.pool import Kind, Told, told
from ingest.classification.user_agent import kinds as kinds_of
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.imports import rows as page_views
from ingest.imports.rows import Kinds, of_hits
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


def of(kinds: Kinds, user_agents: Sequence[str]) -> list[Kind]:
    numbers, known = kinds.of(pa.array(user_agents, pa.string()))
    assert len(set(known)) == len(known)
    return [known[number] for number in numbers.to_pylist()]


def test_user_agent_is_asked_for_once() -> None:
    asked = Asked()
    kinds = Kinds(asked)
    assert of(kinds, AGENTS) == kinds_of(AGENTS)
    more = ["curl/1", *AGENTS[::-1], "curl/2"]
    assert of(kinds, more) == kinds_of(more)
    assert of(kinds, []) == []
    assert asked.agents == [*AGENTS, "curl/1", "curl/2"]


def test_user_agents_that_are_too_many_to_cache_are_looked_up_again() -> None:
    asked = Asked()
    kinds = Kinds(asked, bytes_max=2_000)  # the kinds of two user agents, not of all five
    for agents in (AGENTS, AGENTS[:2], AGENTS[::-1]):
        assert of(kinds, agents) == kinds_of(agents)
    assert asked.agents == [*AGENTS, *AGENTS[:2], *AGENTS[2:][::-1]]


def random_bots(count: int, seed: int) -> list[str]:
    """User agents that each have a kind of their own: the parser takes the bot's name from the text."""
    chance = random.Random(seed)
    return [f"{chance.randbytes(12).hex()}bot/1.0" for _ in range(count)]


def test_memory_stays_bounded_however_many_bots_have_a_name_of_their_own() -> None:
    bytes_max, block = 1_000_000, 500
    kinds, one_block = Kinds(bytes_max=bytes_max), Kinds()
    assert len(set(of(one_block, random_bots(block, seed=-1)))) == block
    sizes = []
    tracemalloc.start()
    try:
        for seed in range(36):
            kinds.of(pa.array(random_bots(block, seed)))
            assert kinds.nbytes <= bytes_max + one_block.nbytes
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    early, late = max(sizes[12:20]), max(sizes[28:])  # the parsers' own caches are full after 12 blocks
    assert late - early < one_block.nbytes


def test_numbers_of_a_table_stay_valid_after_the_caches_were_dropped() -> None:
    kinds = Kinds(bytes_max=0)
    first = random_bots(20, seed=1)
    numbers, known = kinds.of(pa.array(first))
    assert of(kinds, random_bots(20, seed=2)[::-1]) == kinds_of(random_bots(20, seed=2)[::-1])
    assert [known[number] for number in numbers.to_pylist()] == kinds_of(first)


def test_threads_get_the_right_kinds_while_the_caches_are_dropped() -> None:
    kinds = Kinds(bytes_max=20_000)
    parts = [random_bots(40, seed % 6) for seed in range(24)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: of(kinds, part), parts))
    assert found == [kinds_of(part) for part in parts]


def test_threads_are_told_alike_and_of_none_twice() -> None:
    asked = Asked()
    kinds = Kinds(asked)
    some = [f"curl/{number}" for number in range(300)]
    parts = [some[first : first + 60] for first in range(0, 240, 5)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: of(kinds, part), parts))
    assert found == [kinds_of(part) for part in parts]
    assert len(asked.agents) == len(set(asked.agents))
