"""A signed hit whose user agent names no agent or bot is a view by the agent that signed."""

import pytest

from ingest.hits.classes import as_signed
from ingest.hits.evidence import Evidence
from ingest.hits.hit import Hit
from ingest.hits.row import row
from ingest.verification.directories import KeyDirectories
from ingest.verification.signature_agents import signature_agents
from ingest.verification.verifier import Verifier
from tests.ingest.verification.operators.signing import CREATED_S, HOST, Signer
from warehouse.schema import CLASSIFICATION, HOT

CHROME = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36"
SIGNER = Signer()
VALID, FORGED = SIGNER.request(), Signer(2).request(key_id=SIGNER.key_id)
ONLINE = Verifier(directories=KeyDirectories([HOST], lambda _: SIGNER.directory(), wait_s=10))
OFFLINE = Verifier()
BY_SIGNATURE = f"signature:{HOST}"
SIGNED = ("ai", "Google-Agent", "Google", "agent", "ai:signed:Google-Agent", None, "verified", BY_SIGNATURE)
NAMES = ("traffic", "agent", "operator", "purpose", "rule", "browser", "verification", "verified_by")


@pytest.mark.parametrize(
    ("user_agent", "evidence", "verifier", "expected"),
    [
        (CHROME, VALID, ONLINE, SIGNED),
        (CHROME, VALID._replace(accept="text/markdown"), ONLINE, SIGNED),
        ("x", VALID, ONLINE, SIGNED),
        ("Google-Agent", VALID, ONLINE, (*SIGNED[:4], "ai:Google-Agent", *SIGNED[5:])),
        ("curl/8.5.0", VALID, ONLINE, ("bot", "curl", None, None, "bot:http-library:curl", None, "claimed", None)),
        (
            CHROME,
            FORGED,
            ONLINE,
            ("human", None, None, None, "human:browser", "Chrome", "invalid_signature", BY_SIGNATURE),
        ),
        (CHROME, VALID, OFFLINE, ("human", None, None, None, "human:browser", "Chrome", None, None)),
    ],
    ids=["browser", "markdown", "unnamed bot", "own name", "another name", "forged", "unknown key"],
)
@pytest.mark.parametrize("source", ["server", "beacon"])
def test_signature_names_the_agent_of_a_hit_without_another_name(
    source: str, user_agent: str, evidence: Evidence, verifier: Verifier, expected: tuple[str | None, ...]
) -> None:
    hit = Hit("/a", (CREATED_S + 60) * 1_000_000, user_agent, None, {}, None, None, None, evidence)
    values = dict(zip(HOT.names, row("site", hit, source, 0, verifier), strict=True))
    assert tuple(values[name] for name in NAMES) == expected


@pytest.mark.parametrize("agent", sorted({row.agents[0] for row in signature_agents().values()}))
def test_agent_of_each_host_of_the_table_has_an_operator_and_a_purpose(agent: str) -> None:
    columns = dict(zip(CLASSIFICATION.names, as_signed((None,) * len(CLASSIFICATION), agent), strict=True))
    assert columns["agent"] == agent
    assert columns["operator"]
    assert columns["purpose"]
