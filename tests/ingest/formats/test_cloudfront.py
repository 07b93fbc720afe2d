"""Lines of a CloudFront log are parsed by the columns that its headers name."""

from contextlib import suppress
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidLine
from ingest.formats.cloudfront import Parser
from ingest.formats.request import Request
from tests.rounds import rounds

NOON_US = 1_789_473_600_000_000  # 2026-09-15T12:00:00Z
# https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
COLUMNS = (
    "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) "
    "cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken "
    "x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status "
    "fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len "
    "sc-range-start sc-range-end"
).split()
HEADER = b"#Fields: " + " ".join(COLUMNS).encode()
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
ASKED = Request(NOON_US, "GET", "/a?utm_source=x", 200, "https://example.org/", FIREFOX, "2001:db8::1")


def row(*columns: str, **fields: str) -> bytes:
    values = {
        "date": "2026-09-15",
        "time": "12:00:00",
        "c-ip": "2001:db8::1",
        "cs-method": "GET",
        "stem": "/a",
        "status": "200",
        "referrer": "https://example.org/",
        "agent": "Mozilla/5.0%20(X11;%20Linux%20x86_64;%20rv:140.0)%20Gecko/20100101%20Firefox/140.0",
        "query": "utm_source=x",
        "cs-protocol-version": "HTTP/2.0",
    } | fields
    short = {"cs-uri-stem": "stem", "sc-status": "status", "cs(Referer)": "referrer", "cs(User-Agent)": "agent"}
    short["cs-uri-query"] = "query"
    return "\t".join(values.get(short.get(name, name), "-") for name in columns or COLUMNS).encode("latin-1")


def read(**fields: str) -> Request:
    request = Parser([HEADER])(row(**fields))
    assert request is not None
    return request


def test_log_is_parsed_by_its_header() -> None:
    log = [b"#Version: 1.0\n", HEADER + b"\n", row() + b"\n", row() + b"\r\n", row()]
    parse = Parser()
    assert [parse(line) for line in log] == [None, None, ASKED, ASKED, ASKED]


def test_later_header_changes_the_columns() -> None:
    other = ("cs(User-Agent)", "sc-status", "cs-uri-stem", "cs-method", "time", "date")
    parse = Parser([HEADER])
    assert parse(row()) == ASKED
    assert parse(b"#Fields:\t" + "\t".join(other).encode()) is None
    assert parse(row(*other)) == ASKED._replace(target="/a", referrer="", address="")
    with pytest.raises(InvalidLine):
        parse(row()[:50])
    parse(HEADER)
    assert parse(row()) == ASKED


def test_repeated_column_counts_as_a_column() -> None:
    """Name the date twice, as the last column again."""
    parse = Parser([HEADER + b" date"])
    assert parse(row(*COLUMNS, "date")) == ASKED
    with pytest.raises(InvalidLine, match=f"has {len(COLUMNS)} columns of {len(COLUMNS) + 1}"):
        parse(row())


def test_parsers_of_two_logs_have_separate_columns() -> None:
    one, two = Parser([HEADER]), Parser()
    assert one(row()) == ASKED
    with pytest.raises(InvalidLine, match="no #Fields line"):
        two(row())


@pytest.mark.parametrize(
    ("agent", "read_as"),
    [
        ("-", ""), ("Mozilla/5.0%20(compatible)", "Mozilla/5.0 (compatible)"), ("a%2520b", "a%20b"), ("a+b", "a+b"),
        ("caf%C3%A9", "café"), ("caf%E9", "café"), ("caf\xe9", "café"), ("%22quoted%22", '"quoted"'),
        ("a%0Ab", "a�b"), ("100%", "100%"),
    ],
)  # fmt: skip
def test_values_are_percent_encoded_once(agent: str, read_as: str) -> None:
    request = read(agent=agent, referrer=agent)
    assert (request.user_agent, request.referrer) == (read_as, read_as)


def test_target_is_the_stem_with_the_query() -> None:
    assert read(stem="/caf%25C3%25A9", query="a=b%2520c").target == "/caf%C3%A9?a=b%20c"
    assert read(query="-").target == "/a"


def test_status_of_a_response_that_was_never_sent_is_zero() -> None:
    assert read(status="000").status == 0


@pytest.mark.parametrize(
    "line",
    [
        b"", row()[:-1].rpartition(b"\t")[0], row(status="-"), row(status="20"), row(date="-"), row(time="25:00:00"),
        b"\xff",
    ],
)  # fmt: skip
def test_line_that_does_not_match_the_columns_is_malformed(line: bytes) -> None:
    with pytest.raises(InvalidLine):
        Parser([HEADER])(line)


@pytest.mark.parametrize("name", ["date", "time", "cs-method", "cs-uri-stem", "sc-status", "cs(User-Agent)"])
def test_header_without_a_required_column_makes_each_line_malformed_with_the_name_of_the_column(name: str) -> None:
    columns = [column for column in COLUMNS if column != name]
    with pytest.raises(InvalidLine) as error:
        Parser([b"#Fields: " + " ".join(columns).encode()])(row(*columns))
    assert name in str(error.value)


junk = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"\t", b"-", b"#Fields: ", b"date time", b"cs-method", b"%", b"%C3", b"\xff"])
).map(b"".join)


@settings(max_examples=rounds(1_800))
@given(st.lists(junk | st.just(row()) | st.just(HEADER), max_size=5))
def test_any_bytes_are_a_request_or_malformed(lines: list[bytes]) -> None:
    parse = Parser()
    for line in lines:
        with suppress(InvalidLine):
            parse(line)


texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=30).filter(lambda text: text != "-")


@settings(max_examples=rounds(1_200))
@given(st.integers(0, 4_102_444_800), texts, texts, texts)
def test_values_encoded_by_cloudfront_are_parsed_unchanged(second: int, path: str, referrer: str, agent: str) -> None:
    at = datetime.fromtimestamp(second, UTC)
    line = row(
        date=f"{at:%Y-%m-%d}",
        time=f"{at:%H:%M:%S}",
        stem=quote("/" + path, safe="/"),
        query="-",
        referrer=quote(referrer) or "-",
        agent=quote(agent) or "-",
    )
    assert Parser([HEADER])(line) == Request(second * 1_000_000, "GET", "/" + path, 200, referrer, agent, "2001:db8::1")
