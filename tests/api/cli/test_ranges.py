"""`ranges` shows, compares and downloads address lists."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest

from ingest.verification.address_lists import encode, read_folder, shipped
from ingest.verification.verifier import Verifier
from tests.api.cli.console import call, complaint, result
from tests.ingest.verification.operators import https_server
from tests.ingest.verification.operators.https_server import body, serving
from tests.ingest.verification.test_address_lists import LIST
from warehouse.folder import LAKE

OWN = "own-bot"
ADDRESS = "9.9.9.9"


def test_all_lists_are_shown(tmp_path: Path) -> None:
    before = datetime.now(UTC).date()
    rows = result(call(tmp_path / "none", "ranges", "show"))
    assert [row["list"] for row in rows] == list(shipped())
    [row] = [row for row in rows if row["list"] == "openai-gptbot"]
    assert row | {"age_days": 0, "fresh": False} == {
        "list": "openai-gptbot", "operator": "OpenAI", "tokens": ["GPTBot"], "created": "2025-10-30",
        "seen": "2026-09-02", "age_days": 0, "fresh": False, "prefixes": 21, "complete": True, "copies": 2,
        "origin": "release", "source": "https://openai.com/gptbot.json",
        "sha256": shipped()["openai-gptbot"].sha256,
    }  # fmt: skip
    seen = date(2026, 9, 2)
    assert (before - seen).days <= row["age_days"] <= (datetime.now(UTC).date() - seen).days
    assert not (tmp_path / "none").exists()


def test_lists_of_an_agent_or_an_address_are_shown(tmp_path: Path) -> None:
    for arguments, lists in {
        "gptbot": ["openai-gptbot"],
        "Claude-User": ["anthropic-bots"],
        "GoogleOther": ["google-common-crawlers", "google-special-crawlers"],
        "openai-gptbot ccbot": ["commoncrawl-ccbot", "openai-gptbot"],
        "--address 20.171.206.7": ["openai-gptbot"],
        "--address ::ffff:20.171.206.7": ["openai-gptbot"],
    }.items():
        assert [row["list"] for row in result(call(tmp_path, "ranges", "show", *arguments.split()))] == lists


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["ranges", "show"]])
def test_damaged_list_of_the_owner_is_named_in_one_line(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "ranges").mkdir()
    (tmp_path / "ranges" / "own.json").write_text("{")
    assert f"{tmp_path}/ranges/own.json is not an address list" in complaint(call(tmp_path, *command))


def test_lists_are_shown_as_a_table_and_as_csv(tmp_path: Path) -> None:
    table = call(tmp_path, "ranges", "show", "gptbot", "--format", "table").out
    assert "OpenAI" in table
    rows = list(csv.DictReader(io.StringIO(call(tmp_path, "ranges", "show", "--format", "csv").out)))
    assert [row["list"] for row in rows] == list(shipped())
    assert rows[0].keys() == result(call(tmp_path, "ranges", "show"))[0].keys()


def test_address_in_no_list_has_status_1(tmp_path: Path) -> None:
    done = call(tmp_path, "ranges", "show", "--address", "9.9.9.7")
    assert (done.status, done.out, done.err) == (1, "[]\n", "no list has the address 9.9.9.7\n")


def test_mistaken_arguments_are_explained(tmp_path: Path) -> None:
    for arguments, message in {
        "GPTBod": "there is no address list of GPTBod: did you mean gptbot?",
        "meta": "there is no address list of meta: readership ranges show prints all lists",
        "--address 10.0.0.1": "10.0.0.1 is not an IPv4 or IPv6 address of the internet",
        "--address x": "x is not an IPv4 or IPv6 address of the internet",
    }.items():
        done = call(tmp_path, "ranges", "show", *arguments.split())
        assert done.status == 2
        assert message in " ".join(done.err.split())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return https_server.certificate(tmp_path_factory.mktemp("tls"), "localhost")


@pytest.fixture
def operator(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the data folder, which has a list of an operator at a local server that now publishes another prefix."""
    content = {"creationTime": "2026-11-20T10:00:00Z", "prefixes": [{"ipv4Prefix": "9.9.9.0/24"}]}
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(certificate, {"/bot.json": body(json.dumps(content).encode())}) as port:
        own = msgspec.structs.replace(LIST, id=OWN, source=f"https://localhost:{port}/bot.json")
        gone = msgspec.structs.replace(
            LIST, id="gone-bot", tokens=("GoneBot",), source=f"https://localhost:{port}/gone"
        )
        page = msgspec.structs.replace(LIST, id="page-bot", tokens=("PageBot",), is_json=False)
        for folder in ("ranges", LAKE):
            (tmp_path / folder).mkdir()
        for each in (own, gone, page):
            (tmp_path / "ranges" / f"{each.id}.json").write_bytes(encode(each))
        yield tmp_path


def test_diff_shows_the_change_and_writes_nothing(operator: Path) -> None:
    before = read_folder(operator / "ranges")
    [row] = result(call(operator, "ranges", "diff", OWN))
    assert (row["list"], row["added"], row["removed"]) == (OWN, ["9.9.9.0/24"], list(LIST.prefixes))
    assert row["created"] == "2026-11-20"
    assert read_folder(operator / "ranges") == before


def test_refreshed_list_is_used_by_the_next_verifier(operator: Path) -> None:
    assert Verifier(operator / "ranges").by_address("ExampleBot", "", ADDRESS, 0).state == "claimed"
    before = datetime.now(UTC).date()
    [row] = result(call(operator, "ranges", "refresh", "examplebot"))
    assert row["error"] is None
    refreshed = {str(before), str(datetime.now(UTC).date())}
    verdict = Verifier(operator / "ranges").by_address("ExampleBot", "", ADDRESS, 0)
    assert verdict in {("verified", f"list:{OWN} {day}") for day in refreshed}
    [row] = result(call(operator, "ranges", "show", OWN))
    assert (row["origin"], row["fresh"], row["seen"] in refreshed) == ("data folder", True, True)
    assert result(call(operator, "ranges", "refresh", OWN))[0]["added"] == []


def test_list_that_cannot_be_downloaded_stays_in_use(operator: Path) -> None:
    before = read_folder(operator / "ranges")
    done = call(operator, "ranges", "refresh", "gone-bot", OWN)
    assert done.status == 1
    assert [(row["list"], bool(row["error"])) for row in json.loads(done.out)] == [("gone-bot", True), (OWN, False)]
    assert "answered with status 404; the copy of 2026-09-02 stays in use" in " ".join(done.err.split())
    assert "1 list not downloaded" in done.err
    after = read_folder(operator / "ranges")
    assert after["gone-bot"] == before["gone-bot"]
    assert after[OWN] != before[OWN]


def test_list_that_is_published_as_a_page_is_no_failure(operator: Path) -> None:
    done = call(operator, "ranges", "refresh", "PageBot")
    assert done.status == 0
    assert "publishes a page for people" in " ".join(done.err.split())


def test_refresh_without_a_data_folder_creates_nothing(tmp_path: Path) -> None:
    done = call(tmp_path / "none", "ranges", "refresh", "gptbot")
    assert done.status == 1
    assert "there is no data in" in done.err
    assert not (tmp_path / "none").exists()
