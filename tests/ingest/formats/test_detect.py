"""The format of a log is detected from its first lines, or is the one with a given name."""

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.errors import InvalidFormat, InvalidLine, UnknownFormat
from ingest.formats.detect import NAMES, Format, detect, named
from tests.ingest.formats import test_cloudfront, test_json_lines
from tests.ingest.formats.test_clf import common, line, vhost
from tests.rounds import rounds
from tests.warehouse.site import ROOT

SAMPLES: dict[str, bytes] = {
    "combined": line(),
    "common": common(),
    "vhost-combined": vhost(),
    "cloudfront": test_cloudfront.row(),
    **{name: test_json_lines.line(name) for name in test_json_lines.SAMPLES},
}
HEADERS = {"cloudfront": [b"#Version: 1.0", test_cloudfront.HEADER]}
MALFORMED = [
    b'192.0.2.9 - - [15/Sep/2026:12:34:56 +0000] "GET / HTTP/1.1" 400 0 "-',
    b"{",
    b"x\ty",
    b'1 "GET / HTTP/1.1"',
]
ASKED_NOTHING = {
    "caddy": test_json_lines.line("caddy", logger="admin", request=..., status=...),
    "vercel": test_json_lines.line("vercel", source="build", proxy=...),
    "netlify": test_json_lines.line("netlify", log_type="deploy"),
    "combined": line(b"-", status=b"408", user_agent=b"-"),
    "common": common(request=b"", status=b"400"),
    "vhost-combined": vhost(request=rb"\x16\x03\x01", status=b"400"),
}


def log(name: str, lines: int = 3) -> list[bytes]:
    return HEADERS.get(name, []) + [SAMPLES[name]] * lines


def counts(format: Format, lines: list[bytes]) -> tuple[int, int, int]:
    """Return how many lines are requests, how many record no request, and how many are malformed."""
    requests = nothing = malformed = 0
    for each in lines:
        try:
            request = format.parse(each)
        except InvalidLine:
            malformed += 1
        else:
            requests, nothing = requests + (request is not None), nothing + (request is None)
    return requests, nothing, malformed


def test_every_format_has_a_sample_and_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "access-logs.md").read_text().partition("## What is a page view")[0]
    assert {*SAMPLES} == {*NAMES} == {*re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_every_format_is_detected_and_parses_its_log(name: str, end: bytes) -> None:
    lines = [each + end for each in log(name)]
    format = detect(lines)
    assert format.name == name
    expected = (1, len(lines) - 1, 0) if name == "vercel" else (3, len(lines) - 3, 0)  # three lines of one request
    assert counts(format, lines) == expected
    assert counts(named(name, lines), lines) == expected


@pytest.mark.parametrize("name", NAMES)
def test_format_is_detected_by_one_line(name: str) -> None:
    assert detect(log(name, 1)).name == name


@settings(max_examples=rounds(1_200))
@given(
    st.sampled_from(NAMES),
    st.integers(1, 20),
    st.lists(st.sampled_from([*MALFORMED, b"", b"\n"]), max_size=19),
    st.randoms(),
)
def test_format_is_detected_between_other_lines(name: str, own: int, others: list[bytes], random: object) -> None:
    junk = others[: own - 1]
    lines = [SAMPLES[name]] * own + junk
    random.shuffle(lines)  # type: ignore[attr-defined]
    assert detect(HEADERS.get(name, []) + lines).name == name


@pytest.mark.parametrize(
    "lines",
    [
        [line(host=b"2001:db8::1"), line(host=b"::1", user=b"Ana Maria"), line(user=b"-")],
        [line(host=b"192.0.2.1:5678"), line(host=b"example.com")],
        [line(), common(), line() + b' "192.0.2.7" 0.003'],
        [line(), vhost(), line()],
        [line(user_agent=b'a"b'), common(), line(), line(), line()],
        [line()[:-n] for n in range(40)] + [line()] * 40,
    ],
)
def test_combined_is_not_detected_as_common_or_vhost_combined(lines: list[bytes]) -> None:
    assert detect(lines).name == "combined"


@pytest.mark.parametrize("head", [[], [b""], [b"\n", b"  \r\n"]])
def test_log_without_a_line_is_combined(head: list[bytes]) -> None:
    assert detect(head).name == "combined"


@pytest.mark.parametrize("name", sorted(ASKED_NOTHING))
def test_lines_that_record_no_request_do_not_hide_the_format(name: str) -> None:
    assert detect([ASKED_NOTHING[name]] * 50 + [SAMPLES[name]]).name == name
    assert detect([ASKED_NOTHING[name]] * 50).name == name


def test_cloudfront_format_has_the_columns_of_the_head() -> None:
    assert detect(HEADERS["cloudfront"]).name == "cloudfront"
    assert counts(named("cloudfront", log("cloudfront")), [SAMPLES["cloudfront"]]) == (1, 0, 0)
    assert counts(named("cloudfront", []), [SAMPLES["cloudfront"]]) == (0, 0, 1)


@pytest.mark.parametrize("name", NAMES)
def test_blank_line_records_no_request(name: str) -> None:
    format = named(name, [])
    assert [format.parse(each) for each in (b"", b"\n", b" \t\r\n")] == [None, None, None]


@pytest.mark.parametrize(
    "lines",
    [
        [b"2026/09/15 12:34:56 [error] 7#7: *1 open() failed"],
        [line(), b"x", b"y"],
        [line(), common(), b"x", b"y"],
        [b'{"a":1}'] * 100,
        [b"\0" * 100],
    ],
)
def test_log_with_no_format_for_half_of_its_lines_is_unknown(lines: list[bytes]) -> None:
    with pytest.raises(UnknownFormat):
        detect(lines)


def test_error_of_an_unknown_log_has_its_first_line_and_the_names_of_the_formats() -> None:
    with pytest.raises(UnknownFormat) as error:
        detect([b"\n", b"begins\x1b[31m\xff " + b"a" * 200 + b"\n", b"next"])
    message = str(error.value)
    first = message.partition("begins with ")[2].partition("; give")[0]
    assert first.startswith("begins�[31mÿ aaa")
    assert len(first) == 120
    assert all(name in message for name in NAMES)
    assert "--format" in message
    assert "next" not in message
    with pytest.raises(UnknownFormat, match="begins with hello; give"):
        detect([b"hello\r\n"])


@pytest.mark.parametrize("name", ["", "Combined", "auto", "nginx"])
def test_error_of_an_unknown_name_has_the_names_of_the_formats(name: str) -> None:
    with pytest.raises(UnknownFormat) as error:
        named(name, [])
    assert all(known in str(error.value) for known in NAMES)


def test_name_with_a_dollar_is_a_log_format_of_nginx() -> None:
    format = named(
        '$remote_addr - $remote_user [$time_local] "$request" $status $bytes_sent "$http_referer" "$http_user_agent"',
        [],
    )
    assert format.parse(line()) == named("combined", []).parse(line())
    assert format.parse(b"\n") is None
    with pytest.raises(InvalidFormat, match="http_user_agent"):
        named("$request $status $msec", [])


@settings(max_examples=rounds(600))
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_any_lines_have_a_format_or_are_unknown(lines: list[bytes]) -> None:
    with suppress(UnknownFormat):
        assert detect(lines).name in NAMES
