"""Rows of a table of page views: they equal the rows of the hits, converted one by one."""

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.classification.classifier import classify
from ingest.classification.user_agent_cache import UserAgentCache
from ingest.hits.evidence import Evidence
from ingest.hits.hit import Hit
from ingest.hits.row import Site, row
from ingest.imports.rows import ViewCounts, hits_table, lake_rows
from ingest.verification.verifier import Verifier
from tests.ingest.places import mmdb
from tests.rounds import rounds
from warehouse.columns.hits import PARAMETERS
from warehouse.schema import HOT, Row

RECEIVED_US = 1_800_000_000_000_000
AGENTS = [
    "GPTBot/1.3", "", "curl/8.5", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "x" * 600,
]  # fmt: skip
VERIFIER = Verifier()
USER_AGENTS = UserAgentCache()


def hit(number: int) -> Hit:
    return Hit(
        path=f"/{number % 3}" + ("", ".md", "/llms.txt")[number % 3],
        ts_us=RECEIVED_US - number,
        user_agent=AGENTS[number % 5],
        referrer=[None, "https://Example.com/a", "not a URL", "https://[bad"][number % 4],
        parameters=[{"utm_source": "x"}, {}, {"utm_medium": "y", "utm_source": "x"}][number % 3],
        format=None,
        status=[200, 304][number % 2],
        event_id=None,
        evidence=Evidence(
            ["9.9.9.9", None, "10.0.0.1"][number % 3],
            [None, "text/html", "text/markdown", "text/html, text/markdown;q=0.5"][number % 4],
        ),
    )


COUNTRIES = Path(tempfile.mkdtemp(), "countries.mmdb")
SITE = Site(frozenset({"own.example"}), mmdb.write(COUNTRIES, {"9.9.9.0/24": {"country": {"iso_code": "DE"}}}))


def by_columns(hits: list[Hit]) -> tuple[list[Row], ViewCounts]:
    """Return the rows of hits that were converted together, with times in microseconds, and their counts."""
    rows, counts, *_ = lake_rows("site", hits_table(hits), RECEIVED_US, USER_AGENTS, VERIFIER, site=SITE)
    numbers = [pa.field(each.name, pa.int64() if pa.types.is_timestamp(each.type) else each.type) for each in HOT]
    return [tuple(each.values()) for each in rows.cast(HOT).cast(pa.schema(numbers)).to_pylist()], counts


def by_hits(hits: list[Hit]) -> tuple[list[Row], ViewCounts]:
    """Return the rows of hits that were converted one by one, and their counts."""
    rows = [row("site", each, "log", RECEIVED_US, site=SITE) for each in hits]
    traffic, agent = HOT.names.index("traffic"), HOT.names.index("agent")
    return rows, dict(Counter((str(each[traffic]), each[agent]) for each in rows))  # type: ignore[misc]


def test_rows_of_a_table_equal_the_rows_of_its_hits() -> None:
    hits = [hit(number) for number in range(60)]
    rows, counts = by_columns(hits)
    assert (rows, counts) == by_hits(hits)
    assert {name for traffic, name in counts if traffic == "ai"} == {"GPTBot", None}
    traffic, country = HOT.names.index("traffic"), HOT.names.index("country")
    assert {each[country] for each in rows if each[traffic] == "human"} == {"DE", None}
    assert {each[country] for each in rows if each[traffic] != "human"} == {None}


SPOOFED_US = 1_788_400_000_000_000
"""Time at which the list of GPTBot's addresses is fresh."""
accepts = st.none() | st.sampled_from(
    ["text/markdown", "text/html", "*/*", "text/html,text/markdown;q=0.5", "text/markdown;q=0", "Text/Markdown", ""]
)
paths = st.sampled_from(["/", "/a", "/a.md", "/A.MD", "/llms.txt", "/docs/llms-full.txt", "/a.mdx", "/b.markdown"])
addresses = st.sampled_from([None, "9.9.9.9", "20.171.206.7", "10.0.0.1"])
hits_of_a_log = st.builds(
    lambda path, user_agent, accept, address, referrer, parameters: Hit(
        path, SPOOFED_US, user_agent, referrer, parameters, None, 200, None, Evidence(address, accept or None)
    ),
    paths,
    st.sampled_from([*AGENTS, "Claude-User/1.0", "Mozilla/5.0 HeadlessChrome/120"]),
    accepts,
    addresses,
    st.sampled_from([None, "https://www.google.com/", "https://own.example/a", "https://t.co/x", "no URL"]),
    st.dictionaries(st.sampled_from(PARAMETERS), st.sampled_from(["gclid", "chatgpt.com", "email", "x"]), max_size=2),
)


@pytest.mark.long
@settings(max_examples=rounds(600))
@given(st.lists(hits_of_a_log, max_size=12))
def test_hits_converted_together_give_the_rows_of_hits_converted_one_by_one(hits: list[Hit]) -> None:
    assert by_columns(hits) == by_hits(hits)


@settings(max_examples=50)
@given(hits_of_a_log)
def test_row_has_the_answer_of_the_classifier_for_its_accept_header(hit: Hit) -> None:
    read = dict(zip(HOT.names, row("site", hit, "log", RECEIVED_US), strict=True))
    answer = classify(hit.user_agent, hit.evidence.accept)
    expected = (answer.traffic, answer.agent, answer.operator, answer.purpose, answer.rule)
    if read["verification"] == "spoofed":
        expected = ("bot", answer.agent, None, None, f"bot:spoofed:{answer.agent}")
    assert tuple(read[name] for name in ("traffic", "agent", "operator", "purpose", "rule")) == expected


def test_empty_table_has_no_rows() -> None:
    rows, counts, *_ = lake_rows("site", hits_table([]), RECEIVED_US, UserAgentCache(), Verifier())
    assert (rows.num_rows, counts) == (0, {})
    assert rows.cast(HOT).schema.equals(HOT)
