"""Every spelling of a page becomes one path: each rule with examples by hand, and laws for all texts."""

import string
from urllib.parse import unquote

import pytest
from hypothesis import assume, example, given, reject, settings
from hypothesis import strategies as st

from ingest.errors import InvalidField
from ingest.hits.url import (
    PATH_CHARACTERS_MAX,
    URL_CHARACTERS_MAX,
    cut_path,
    host,
    normalize_path,
    normalize_prefix,
    path_of_url,
)
from tests.rounds import rounds

PATHS = [
    # query and fragment
    ("/a?b=c", "/a"), ("/a#top", "/a"), ("/a?b#c", "/a"), ("/a#b?c", "/a"), ("/a?b?c", "/a"), ("/?a", "/"),
    ("/#", "/"), ("?a=b", "/"), ("#top", "/"), ("/a/?b=/c/", "/a"), ("/a%3Fb%23c", "/a%3Fb%23c"),
    # one leading slash
    ("a", "/a"), ("a/b", "/a/b"), ("//a", "/a"), ("///a//b", "/a//b"), ("//example.com/a", "/example.com/a"),
    ("%2Fa", "/%2Fa"),
    # no trailing slash, except for /
    ("/", "/"), ("//", "/"), ("/a/", "/a"), ("/a//", "/a"), ("/a/b/", "/a/b"), ("/a%2F", "/a%2F"),
    # index.html dropped
    ("/index.html", "/"), ("index.html", "/"), ("/a/index.html", "/a"), ("/a//index.html", "/a"),
    ("/a/index.html?b", "/a"), ("/a/index.html/", "/a"), ("/index.html/index.html", "/"), ("/a/%69ndex.html", "/a"),
    ("/a/index%2Ehtml", "/a"), ("/index.html/a", "/index.html/a"), ("/a/my-index.html", "/a/my-index.html"),
    ("/a/index.htm", "/a/index.htm"), ("/a/Index.html", "/a/Index.html"), ("/a/index.html5", "/a/index.html5"),
    # percent-encoding
    ("/%7Eana", "/~ana"), ("/%41%62%30%2D%2E%5F", "/Ab0-._"), ("/caf%c3%a9", "/caf%C3%A9"),
    ("/caf\xe9", "/caf%C3%A9"), ("/\u65e5\u672c", "/%E6%97%A5%E6%9C%AC"), ("/\U0001f4a9", "/%F0%9F%92%A9"),
    ("/a b", "/a%20b"), ("/a+b", "/a+b"), ("/a%20b", "/a%20b"), ("/a%2fb", "/a%2Fb"), ("/a%252Fb", "/a%252Fb"),
    ("/100%", "/100%25"), ("/%zz", "/%25zz"), ("/%4", "/%254"), ("/%%41", "/%25A"), ("/%2%30", "/%2520"),
    ("/%00", "/%00"), ("/%ff", "/%FF"), ('/"<>\\^`{|}', "/%22%3C%3E%5C%5E%60%7B%7C%7D"),
    ("/a;b=1,2:@!$&'()*/c", "/a;b=1,2:@!$&'()*/c"), ("/a**", "/a*%2A"), ("/a*/", "/a%2A"), ("/a%2a", "/a%2A"),
    ("/%3B%3A%40", "/%3B%3A%40"), ("/[a]", "/%5Ba%5D"), ("/\x80\x9f\xa0", "/%C2%80%C2%9F%C2%A0"),
    ("/\ufeff\u2028", "/%EF%BB%BF%E2%80%A8"),
    # case and inner slashes distinguish pages
    ("/Docs/Install", "/Docs/Install"), ("/docs//install", "/docs//install"),
    # texts that only look like an http URL
    ("/https://example.com/", "/https://example.com"), ("http:/a", "/http:/a"), ("https://", "/https:"),
    ("ftp://example.com/a", "/ftp://example.com/a"),
]  # fmt: skip

URLS = [
    ("https://example.com", "/"), ("https://example.com/", "/"), ("https://example.com/a", "/a"),
    ("http://example.com/a", "/a"), ("HTTPS://EXAMPLE.COM/A", "/A"), ("https://example.com?a=b", "/"),
    ("https://example.com#top", "/"), ("https://example.com/a/?b#c", "/a"), ("https://example.com//a", "/a"),
    ("https://example.com:8443/a", "/a"), ("https://example.com:8443", "/"),
    ("https://user:secret@example.com/a", "/a"), ("https://user:secret@example.com", "/"),
    ("https://[2001:db8::1]/a", "/a"), ("https://[2001:db8::1]:8443/a", "/a"), ("https://[2001:db8::1]", "/"),
    ("https://192.0.2.1/a", "/a"), ("https://b\xfccher.example/a", "/a"),
    ("https://example.com/https://example.org/a", "/https://example.org/a"),
    ("https://example.com/a/index.html", "/a"), ("https://example.com/%7Eana", "/~ana"),
]  # fmt: skip

NO_URLS = [
    "", "/a", "a", "//example.com/a", "example.com/a", "https:/example.com", "https://", "https:///a", "https://?a",
    "https://#a", "ftp://example.com/a", "file:///a", "android-app://com.example/a", "javascript:alert(1)",
    "https//example.com", " https://example.com/a", "https:// example.com/a", "https://exam ple.com/a",
    "https://example.com /a",
]  # fmt: skip

UNSTORABLE = [*map(chr, range(0x20)), "\x7f", "\ud800", "\udbff", "\udc00", "\udfff"]


@pytest.mark.parametrize(("path", "normalised"), PATHS)
def test_path_has_one_spelling(path: str, normalised: str) -> None:
    assert normalize_path(path) == normalised
    assert normalize_path(normalised) == normalised


@pytest.mark.parametrize(("url", "normalised"), URLS)
def test_url_has_the_path_after_its_host(url: str, normalised: str) -> None:
    assert path_of_url(url) == normalised


@pytest.mark.parametrize("url", NO_URLS)
def test_text_without_a_host_or_http_is_not_a_url(url: str) -> None:
    with pytest.raises(InvalidField) as raised:
        path_of_url(url)
    assert raised.value.field == "url"


@pytest.mark.parametrize("url", [url for url, _ in URLS])
def test_url_sent_as_a_path_is_refused_with_the_right_field(url: str) -> None:
    with pytest.raises(InvalidField, match=r"^path: is an absolute URL; send it as `url`$"):
        normalize_path(url)


def test_empty_path_is_refused() -> None:
    with pytest.raises(InvalidField, match=r"^path: must not be empty$"):
        normalize_path("")


@pytest.mark.parametrize("unstorable", UNSTORABLE, ids=ascii)
@pytest.mark.parametrize("place", ["/{}", "/a{}b", "/a?{}", "/a#{}", "{}/a", "/a{}"])
def test_control_character_or_lone_surrogate_is_refused_anywhere(unstorable: str, place: str) -> None:
    text = place.format(unstorable)
    with pytest.raises(InvalidField, match="control character or a lone surrogate"):
        normalize_path(text)
    with pytest.raises(InvalidField):
        path_of_url(f"https://example.com{text}")


def test_host_is_no_longer_than_a_name_can_be() -> None:
    assert host(f"https://{'a' * 253}/") == "a" * 253
    assert host(f"https://{'a' * 254}/") is None
    assert host("https://[") is None


@pytest.mark.parametrize(
    ("path", "characters_max", "cut"),
    [
        ("/abcdef", 4, "/abc"),
        ("/ab/cd", 4, "/ab"),
        ("/ab*cd", 4, "/ab"),
        ("/%41*", 2, "/"),
        ("/a/index.htmlx", 13, "/a"),
        ("/a/*/index.html/*", 16, "/a"),
        *(("/" + "%C3%A9" * 2, length, "/%C3%A9") for length in range(7, 13)),  # é
        *(("/" + "%E2%82%AC" * 2, length, "/%E2%82%AC") for length in range(10, 19)),  # €
        *(("/" + "%F0%9F%98%80" * 2, length, "/%F0%9F%98%80") for length in range(13, 25)),  # an emoji
        ("/%A9%A9", 6, "/%A9"),  # not UTF-8
    ],
)
def test_cut_path_ends_with_a_whole_character_and_is_normalised(path: str, characters_max: int, cut: str) -> None:
    assert cut_path(path, characters_max) == cut


def test_query_may_be_longer_than_a_path_up_to_another_limit() -> None:
    assert normalize_path("/a?" + "b" * (URL_CHARACTERS_MAX - 3)) == "/a"
    with pytest.raises(InvalidField, match="has 8193 characters; at most 8192 are accepted"):
        normalize_path("/a?" + "b" * (URL_CHARACTERS_MAX - 2))


PATH_CHARACTERS = set(string.ascii_letters + string.digits + "/:@!$&'()*+,;=-._~%")
pieces = st.sampled_from(["/", "//", "%", "%2F", "%41", "%c3", "%7e", "?", "#", ".", "index.html", "/index.html", "a"])
texts = st.text(max_size=60) | st.lists(pieces | st.text(max_size=2), max_size=20).map("".join)


def normalised(text: str) -> str:
    """Return the path of a text, or skip the example if the text has no path."""
    try:
        return normalize_path(text)
    except InvalidField:
        reject()


@pytest.mark.long
@settings(max_examples=rounds(3_000))
@given(texts)
@example("/index.html/")
@example("/%2%30")
@example("//%2Findex.html//")
def test_normalised_path_is_ascii_with_one_leading_and_no_trailing_slash_and_stays(text: str) -> None:
    path = normalised(text)
    assert normalize_path(path) == path_of_url("https://example.com" + path) == path
    assert set(path) <= PATH_CHARACTERS
    assert path.startswith("/")
    assert not path.startswith("//")
    assert path == "/" or not path.endswith(("/", "/index.html"))
    escapes = [path[i : i + 3] for i, character in enumerate(path) if character == "%"]
    assert all(len(escape) == 3 and set(escape[1:]) <= set("0123456789ABCDEF") for escape in escapes)


@pytest.mark.long
@settings(max_examples=rounds(3_000))
@given(texts, st.integers(1, 30))
@example("/a/*/index.html/bc", 15)
def test_cut_path_is_a_normalised_beginning_of_the_path(text: str, characters_max: int) -> None:
    path = normalised(text)
    cut = cut_path(path, characters_max)
    assert path.startswith(cut)
    assert len(cut) <= characters_max
    assert normalize_path(cut) == cut


@pytest.mark.long
@settings(max_examples=rounds(3_000))
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/?#%"), min_size=1))
def test_segment_decodes_to_the_segment_that_was_sent(segment: str) -> None:
    assume(segment != "index.html")
    assert unquote(normalize_path("/" + segment)) == "/" + segment


@pytest.mark.parametrize(
    ("prefix", "normalized"),
    [
        ("", "/"), ("/", "/"), ("docs", "/docs"), ("/docs", "/docs"), ("//docs/", "/docs/"),
        ("/docs/index.html", "/docs/index.html"), ("/caf\u00e9", "/caf%C3%A9"),
        ("/caf%c3%a9/%7Eana", "/caf%C3%A9/~ana"), ("/50%", "/50%25"), ("/a*b", "/a*b"),
    ],
)  # fmt: skip
def test_prefix_is_spelled_like_the_paths_that_begin_with_it(prefix: str, normalized: str) -> None:
    assert normalize_prefix(prefix) == normalized
    assert normalize_path(f"{prefix}x").startswith(normalized)


@pytest.mark.parametrize(
    "prefix", ["https://example.com/a", "/a?b", "/a#b", "/a\n", "/\ud800", "/" + PATH_CHARACTERS_MAX * "a"]
)
def test_prefix_of_no_path_is_rejected(prefix: str) -> None:
    with pytest.raises(InvalidField):
        normalize_prefix(prefix)
