"""Signatures are checked against their keys, times and covered components; hostile headers have a clear outcome."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.hits.evidence import NO_EVIDENCE, Evidence
from ingest.verification.directories import KeyDirectories
from ingest.verification.public_keys import JsonWebKey, parse_directory, thumbprint
from ingest.verification.signatures import LIFETIME_S_MAX, SKEW_S, Signature, SignatureCheck
from tests.ingest.verification.operators.signing import AGENTS, COVERED, CREATED_S, HOST, URL, Signer

SIGNER = Signer()
TS_US = (CREATED_S + 60) * 1_000_000
VALID, INVALID = Signature("valid", HOST), Signature("invalid")
VECTORS = json.loads(Path(__file__).with_name("web_bot_auth_vectors.json").read_text())
"""Vectors of Cloudflare, from 2025 to 2124."""
MORE = SIGNER.sign(covered=("@authority", "signature-agent", "priority"), more={"Priority": "u=1"})
COVERS_MORE = Evidence(headers=MORE, url=URL)
"""Request whose signature covers a header beside Signature-Agent."""
VECTOR_TS_US = 1_735_689_700 * 1_000_000
A_CENTURY_S = 101 * 366 * 86_400


def check(directory: bytes = SIGNER.directory(), host: str = HOST, **options: Any) -> SignatureCheck:
    return SignatureCheck(KeyDirectories([host], lambda _: directory, wait_s=10), **options)


CHECK = check()


def outcome_of(request: Evidence, ts_us: int = TS_US) -> str | None:
    result = CHECK.check(request, ts_us)
    return result and result.outcome


@pytest.mark.parametrize("form", ["dictionary", "string"])
def test_signature_by_a_key_of_the_directory_is_valid(form: str) -> None:
    request = SIGNER.request(agent=AGENTS[form], covered=COVERED[form])
    assert CHECK.check(request, TS_US) == VALID


@pytest.mark.parametrize(
    "covered", [("@target-uri", '"signature-agent";key="g"'), ("@authority", "@target-uri", "signature-agent")]
)
def test_other_covered_components_are_accepted(covered: tuple[str, ...]) -> None:
    assert CHECK.check(SIGNER.request(covered=covered), TS_US) == VALID


@pytest.mark.parametrize("covered", [COVERED["dictionary"], ("@target-uri", "signature-agent")])
def test_url_with_decoded_letters_is_that_of_the_request(covered: tuple[str, ...]) -> None:
    signed = SIGNER.request(url="https://example.com/r%C3%A9sum%C3%A9%20a?q=%2F", covered=covered)
    assert CHECK.check(signed._replace(url="https://example.com/résumé a?q=%2F"), TS_US) == VALID
    assert CHECK.check(signed._replace(url="https://example.org/résumé a?q=%2F"), TS_US) == Signature("invalid", HOST)


@pytest.mark.parametrize(
    "vector", VECTORS["vectors"], ids=lambda vector: vector["key"]["kty"] + vector["signature"][:4]
)
def test_published_vectors_of_cloudflare(vector: dict[str, Any]) -> None:
    headers = {"signature": vector["signature"], "signature-input": vector["signature_input"]}
    if agent := vector.get("signature_agent"):
        headers["signature-agent"] = agent
    request = Evidence(headers=headers, url=VECTORS["target_url"])
    directory = json.dumps({"keys": [vector["key"]]}).encode()
    lenient = check(directory, "signature-agent.test", lifetime_s_max=A_CENTURY_S)
    proven = Signature("valid", "signature-agent.test") if agent else Signature("unverified")
    assert lenient.check(request, VECTOR_TS_US) == proven
    assert check(directory, "signature-agent.test").check(request, VECTOR_TS_US) == INVALID  # longer than 24 h
    other_site = request._replace(url="https://example.org/path/to/resource")
    assert lenient.check(other_site, VECTOR_TS_US) == (proven._replace(outcome="invalid") if agent else proven)


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        (Signer(2).request(key_id=SIGNER.key_id), "invalid"),  # signed by another key than the one that it names
        (Signer(2).request(), "unverified"),  # a key that is not in the directory
        (SIGNER.request(url="https://example.org/guide?page=2"), "invalid"),  # signed for another site
        (SIGNER.request(covered=("@target-uri", "signature-agent"), url="https://example.com/"), "invalid"),
        (SIGNER.request(covered=("@method", "signature-agent")), "invalid"),  # valid for every site
        (SIGNER.request(covered=("@authority",)), "invalid"),  # Signature-Agent may have been replaced
        (SIGNER.request(agent=None, covered=("@authority",)), "unverified"),  # no host, and a key of no table
        (SIGNER.request(lifetime_s=LIFETIME_S_MAX), "valid"),
        (SIGNER.request(lifetime_s=LIFETIME_S_MAX + 1), "invalid"),
        (SIGNER.request(lifetime_s=0), "invalid"),
        (SIGNER.request()._replace(url=None), "unverified"),
        (COVERS_MORE, "valid"),
        (COVERS_MORE._replace(headers={name: text for name, text in MORE.items() if name != "priority"}), "unverified"),
        (COVERS_MORE._replace(headers={**MORE, "priority": "u=2"}), "invalid"),
        (SIGNER.request()._replace(method="get"), "valid"),
        (SIGNER.request(agent='g="https://signer.example"'), "unverified"),  # a host that is not in the allow-list
        (SIGNER.request(agent='g="http://agent.bot.goog"'), "unverified"),
        (SIGNER.request(agent='g="https://agent.bot.goog/keys.json";type=jwks_uri'), "unverified"),
        (SIGNER.request(agent='g="https://me@agent.bot.goog"'), "unverified"),
        (SIGNER.request(agent='g="data:application/json,{}"'), "unverified"),
        (SIGNER.request(agent="g=1"), "unverified"),
    ],
)
def test_outcome_of_a_request(request_: Evidence, outcome: str) -> None:
    assert outcome_of(request_) == outcome


@pytest.mark.parametrize(
    ("time_s", "outcome"),
    [
        (CREATED_S - SKEW_S - 1, "invalid"),
        (CREATED_S - SKEW_S, "valid"),
        (CREATED_S + 3600 + SKEW_S, "valid"),
        (CREATED_S + 3600 + SKEW_S + 1, "invalid"),
    ],
)
def test_signature_is_valid_from_its_creation_to_its_end_by_similar_clocks(time_s: int, outcome: str) -> None:
    assert outcome_of(SIGNER.request(), time_s * 1_000_000) == outcome


@pytest.mark.parametrize("times", [{"nbf": CREATED_S + 61}, {"exp": CREATED_S + 59}])
def test_key_that_is_not_in_use_at_the_time_of_the_request_is_no_evidence(times: dict[str, int]) -> None:
    assert check(SIGNER.directory(**times)).check(SIGNER.request(), TS_US) == Signature("unverified", HOST)


def test_directory_that_cannot_be_fetched_is_no_evidence() -> None:
    assert check(b"<html>").check(SIGNER.request(), TS_US) == Signature("unverified", HOST)
    assert SignatureCheck().check(SIGNER.request(), TS_US) == Signature("unverified", HOST)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"signature-agent": AGENTS["dictionary"]},
        {"signature": 'keyId="https://social.example/actor",headers="(request-target) date",signature="YQ=="'},
        dict(SIGNER.sign(tag=None)),
        dict(SIGNER.sign(tag="another-use")),
        {"signature-input": "((("},
    ],
)
def test_request_without_a_signature_of_an_agent_has_no_outcome(headers: dict[str, str]) -> None:
    assert CHECK.check(Evidence(headers=headers, url=URL), TS_US) is CHECK.check(NO_EVIDENCE, TS_US) is None


SIGNED = dict(SIGNER.sign())
MEMBER = SIGNED["signature-input"].removeprefix("g=")
BYTES = SIGNED["signature"].removeprefix("g=")


@pytest.mark.parametrize(
    "changed",
    [
        {"signature-input": ", ".join(f"a{number}={MEMBER}" for number in range(10_000))},
        {"signature-input": f"g={MEMBER}, g={MEMBER}"},  # a label twice
        {"signature-input": ", ".join(f"g{number}={MEMBER}" for number in range(5))},
        {"signature-input": f"g={MEMBER}" + ";a" * 4000},
        {"signature-input": "g=(" + '"@authority" ' * 500 + ")" + MEMBER.partition(")")[2]},
        {"signature-input": f"g={MEMBER},,"},
        {"signature-input": 'g="x";tag="web-bot-auth"'},
        {"signature-input": "(" * 4000 + "web-bot-auth"},
        {"signature-input": MEMBER.replace("created=", "created=9")},
        {"signature-input": f"g={MEMBER.replace(str(CREATED_S), '1e9')}"},
        {"signature-input": f"g={MEMBER.replace(str(CREATED_S), '999999999999999')}"},
        {"signature-input": "g=" + MEMBER.replace("web-bot-auth", "web-bot-auth\u2010")},
        {"signature": "g=:!!!!:"},
        {"signature": "g=:YQ==:"},
        {"signature": "g=::"},
        {"signature": "g=1"},
        {"signature": f"h={BYTES}"},
        {"signature": f"g={BYTES}, h={BYTES}"},
        {"signature": ""},
        {"signature": "x" * 100_000},
        {"signature-agent": "x" * 100_000},
    ],
)
def test_hostile_headers_are_invalid(changed: dict[str, str]) -> None:
    assert outcome_of(Evidence(headers=SIGNED | changed, url=URL)) == "invalid"


def test_signature_input_without_a_signature_is_invalid() -> None:
    headers = {"signature-input": SIGNED["signature-input"], "signature-agent": SIGNED["signature-agent"]}
    assert CHECK.check(Evidence(headers=headers, url=URL), TS_US) == INVALID


@pytest.mark.parametrize("other", [{"key_id": SIGNER.key_id}, {"tag": "another-use"}], ids=["invalid", "another use"])
def test_one_valid_signature_is_enough_beside_an_invalid_one_and_one_of_another_use(other: dict[str, str]) -> None:
    second = dict(Signer(2).sign(label="h", **other))
    headers = {name: f"{second[name]}, {SIGNED[name]}" for name in ("signature-input", "signature")}
    assert CHECK.check(Evidence(headers={**SIGNED, **headers}, url=URL), TS_US) == VALID


KNOWN = SignatureCheck(known_keys={SIGNER.key_id: (HOST, next(iter(parse_directory(SIGNER.directory()).values())))})


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        (SIGNER.request(), Signature("known_key", HOST)),
        (SIGNER.request(agent=None, covered=("@authority",)), Signature("known_key", HOST)),
        (Signer(2).request(key_id=SIGNER.key_id), INVALID._replace(host=HOST)),
        (SIGNER.request(agent='g="https://signer.example"'), Signature("unverified", "signer.example")),
    ],
)
def test_signature_by_a_known_key_proves_the_key_and_not_its_directory(request_: Evidence, outcome: Signature) -> None:
    assert KNOWN.check(request_, TS_US) == outcome


CHATGPT_KEY = "otMqcjr17mGyruktGvJU8oojQTSMHlVm7uO-lrcqbdg"
"""Id of the bundled key of ChatGPT's agent, whose private key nobody but OpenAI has."""


@pytest.mark.parametrize(
    ("agent", "outcome"),
    [
        ('g="https://chatgpt.com"', Signature("invalid", "chatgpt.com")),
        ('g="https://agent.bot.goog"', Signature("unverified", HOST)),  # a key of another host
    ],
)
def test_forged_signature_with_the_id_of_a_bundled_key(agent: str, outcome: Signature) -> None:
    assert SignatureCheck().check(SIGNER.request(agent=agent, key_id=CHATGPT_KEY), TS_US) == outcome


def test_thumbprints_are_those_of_the_published_vectors() -> None:
    for vector in VECTORS["vectors"]:
        key = JsonWebKey(**vector["key"])
        assert f'keyid="{thumbprint(key)}"' in vector["signature_input"]
