"""A request is a page view, or is skipped for one reason, or is malformed."""

import re
from typing import Any, get_args

import pytest

from ingest.errors import InvalidLine
from ingest.formats.clf import parse
from ingest.formats.page_filter import ASSET, Pages, Skip, page_view
from ingest.formats.request import Request
from ingest.hits.hit import Hit
from ingest.hits.url import URL_CHARACTERS_MAX
from tests.ingest.formats.test_clf import line
from tests.warehouse.site import ROOT
from warehouse.columns.kinds import NOT_PAGE_FOLDER, NOT_PAGE_PATHS, NOT_PAGES


def skipped(**fields: Any) -> str:
    """Return the reason why a line is not a page view."""
    result = page_view(parse(line(**fields)))
    return result if isinstance(result, str) else result.path if result.path[:1] == "/" else "not_a_page"


def path(request: bytes) -> str:
    result = page_view(parse(line(request)))
    assert isinstance(result, Hit), result
    return result.path


@pytest.mark.parametrize(
    ("target", "normalised"),
    [
        ("/caf\xe9".encode(), "/caf%C3%A9"), ("/caf\xe9".encode("latin-1"), "/caf%C3%A9"),
        (rb"/caf\xC3\xA9", "/caf%C3%A9"), (rb"/a\x22b", "/a%22b"), (rb"/a\"b", "/a%22b"), (rb"/a\x20b", "/a%20b"),
        (b"/%7Eana", "/~ana"),
    ],
)  # fmt: skip
def test_escapes_of_a_target_are_undone_before_it_is_normalised(target: bytes, normalised: str) -> None:
    assert path(b"GET %s HTTP/1.1" % target) == normalised


@pytest.mark.parametrize(
    ("target", "normalised"),
    [
        (b"/", "/"), (b"/?q=.css", "/"), (b"/a/", "/a"), (b"/index.html", "/"), (b"//a", "/a"),
        (b"http://example.com/a?b", "/a"), (b"https://example.com", "/"),
        (b"HTTPS://user@example.com:8443/a/", "/a"), (b"/a.html", "/a.html"), (b"/a.php", "/a.php"),
        (b"/a.md", "/a.md"), (b"/a.txt", "/a.txt"), (b"/a.pdf", "/a.pdf"), (b"/llms.txt", "/llms.txt"),
        (b"/llms-full.txt", "/llms-full.txt"), (b"/v1.0", "/v1.0"), (b"/css", "/css"), (b"/a.css/b", "/a.css/b"),
        (b"/a.css.html", "/a.css.html"), (b"/acss", "/acss"), (b"/blog/robots.txt", "/blog/robots.txt"),
        (b"/robots.txt.html", "/robots.txt.html"), (b"/.well-known", "/.well-known"),
        (b"/a/.well-known/b", "/a/.well-known/b"), (b"/a%2Ecss%2Fb", "/a.css%2Fb"),
    ],
)  # fmt: skip
def test_target_of_a_page_counts_under_its_path(target: bytes, normalised: str) -> None:
    assert path(b"GET %s HTTP/1.1" % target) == normalised


@pytest.mark.parametrize(
    "target",
    [
        b"/a.css", b"/a.CSS", b"/a.css?v=1", b"/a.css/", b"/a%2Ecss", b"/.css", b"/a.min.js", b"/favicon.ico",
        b"/feed.xml", b"/feed.rss", b"/feed.atom", b"/sitemap.xml.gz", b"/robots.txt", b"/robots.txt?a",
        b"//robots.txt", b"/ads.txt", b"/humans.txt", b"/.well-known/security.txt", b"https://example.com/a.css",
    ],
)  # fmt: skip
def test_target_that_is_not_a_page_is_skipped(target: bytes) -> None:
    assert skipped(request=b"GET %s HTTP/1.1" % target) == "not_a_page"


@pytest.mark.parametrize("extension", sorted(NOT_PAGES))
def test_extension_that_is_not_of_a_page_is_skipped_in_any_case(extension: str) -> None:
    for written in (extension, extension.upper()):
        assert skipped(request=b"GET /a/b.%s HTTP/1.1" % written.encode()) == "not_a_page"


@pytest.mark.parametrize(
    ("target", "is_asset"),
    [
        ("/style.css?v=3", True), ("/a/b.min.JS", True), ("https://example.com/logo.svg", True), ("/.css", True),
        ("/favicon.ico", False), ("/favicon-32x32.png", False), ("/a/apple-touch-icon.png", False),
        ("/favicons/a.png", True), ("/robots.txt", False), ("/feed.xml", False), ("/app.js.map", False),
    ],
)  # fmt: skip
def test_asset_is_a_hit_without_a_path_unless_its_path_is_excluded(target: str, is_asset: bool) -> None:
    result = page_view(Request(0, "GET", target, 304, "", ""), Pages())
    assert isinstance(result, Hit) == is_asset
    assert isinstance(result, str) or result.path == ASSET
    assert page_view(Request(0, "GET", target, 304, "", ""), Pages(exclude=("*",))) == "excluded"
    assert page_view(Request(0, "GET", target, 404, "", ""), Pages()) == "status"


@pytest.mark.parametrize(
    "request_",
    [
        *(method + b" /a HTTP/1.1" for method in (b"POST", b"HEAD", b"PUT", b"DELETE", b"PATCH", b"get", b"PROPFIND")),
        b"OPTIONS * HTTP/1.1",
        b"CONNECT example.com:443 HTTP/1.1",
    ],
)
def test_other_methods_than_get_are_skipped_with_any_target(request_: bytes) -> None:
    assert skipped(request=request_) == "method"


@pytest.mark.parametrize("status", [b"000", b"100", b"199", b"300", b"301", b"302", b"303", b"307", b"600", b"999"])
def test_responses_without_a_page_are_skipped(status: bytes) -> None:
    assert skipped(status=status) == "status"


@pytest.mark.parametrize("status", [b"400", b"404", b"499", b"500", b"599"])
def test_error_has_a_hit_if_its_path_is_that_of_a_page(status: bytes) -> None:
    error = page_view(parse(line(b"GET /old/?q HTTP/1.1", status=status)))
    assert isinstance(error, Hit)
    assert (error.path, error.status) == ("/old", int(status))
    for request in (b"GET /a.css HTTP/1.1", b"GET /robots.txt HTTP/1.1", b"GET /" + b"a" * 9_000 + b" HTTP/1.1"):
        assert skipped(request=request, status=status) == "status"
    assert skipped(request=b"POST /a HTTP/1.1", status=status) == "method"
    assert page_view(parse(line(status=status)), Pages(exclude=("/a",))) == "status"


@pytest.mark.parametrize("status", [b"200", b"201", b"204", b"206", b"299", b"304"])
def test_responses_with_a_page_are_page_views(status: bytes) -> None:
    result = page_view(parse(line(status=status)))
    assert isinstance(result, Hit)
    assert result.status == int(status)


def test_first_of_several_reasons_is_returned() -> None:
    assert skipped(request=b"POST /a.css HTTP/1.1", status=b"404") == "method"
    assert skipped(request=b"GET /a.css HTTP/1.1", status=b"404") == "status"
    assert skipped(request=b"GET /a.css HTTP/1.1", status=b"200") == "not_a_page"
    pages = Pages(exclude=("*",))
    assert page_view(Request(0, "POST", "/a", 404, "", ""), pages) == "method"
    assert page_view(Request(0, "GET", "/a", 404, "", ""), pages) == "status"


@pytest.mark.parametrize("target", [b"/?" + b"a" * URL_CHARACTERS_MAX, b"https://"], ids=["too long", "no host"])
def test_target_without_a_path_makes_the_line_malformed(target: bytes) -> None:
    request = parse(line(b"GET " + target + b" HTTP/1.1"))
    with pytest.raises(InvalidLine):
        page_view(request)


def test_texts_over_their_limits_are_cut() -> None:
    target, referrer = b"/" + b"a" * 3_000, b"https://example.com/" + b"a" * 9_000
    result = page_view(
        parse(line(request=b"GET " + target + b" HTTP/1.1", user_agent=b"u" * 20_000, referrer=referrer))
    )
    assert isinstance(result, Hit)
    assert (len(result.path), len(result.user_agent), len(result.referrer or "")) == (2_048, 1_024, 1_024)
    assert result.cut == ("path", "userAgent", "referrer")


def test_docs_list_the_extensions_and_paths_that_are_not_pages_and_explain_the_reasons_in_their_order() -> None:
    text = (ROOT / "docs" / "access-logs.md").read_text()

    def listed(name: str) -> list[str]:
        """Return the names between the marks of a list."""
        return sorted(re.findall("`([^`]+)`", text.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]))

    assert listed("extensions") == sorted(NOT_PAGES)
    assert listed("paths") == sorted({*NOT_PAGE_PATHS, NOT_PAGE_FOLDER})
    explained = text.partition("## Lines that are skipped")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", explained, re.MULTILINE)) == get_args(Skip)


# The owner's globs


def outcome(target: str, pages: Pages) -> str:
    """Return the path of a view of the target, or the reason why it is not a page view."""
    result = page_view(Request(0, "GET", target, 200, "", ""), pages)
    return result if isinstance(result, str) else result.path if result.path[:1] == "/" else "not_a_page"


@pytest.mark.parametrize(
    ("glob", "target"),
    [
        ("/feed.xml", "/feed.xml"), ("*.xml", "/a/b/feed.xml"), ("/data/*", "/data/a/b.json"),
        ("/data/?.json", "/data/a.json"), ("/[ab].css", "/b.css"), ("/[!ab].css", "/c.css"),
        ("/robots.txt", "/robots.txt?a=1"), ("/.well-known/*", "/.well-known/a/b"), ("*", "/a.css"),
        ("/caf%C3%A9.xml", "/caf\xe9.xml"),
    ],
)  # fmt: skip
def test_included_path_is_a_page_with_any_extension(glob: str, target: str) -> None:
    assert outcome(target, Pages()) == "not_a_page"
    assert outcome(target, Pages(include=("/other", glob))).startswith("/")


@pytest.mark.parametrize(
    ("glob", "target"),
    [
        ("feed.xml", "/feed.xml"), ("/feed", "/feed.xml"), ("/FEED.xml", "/feed.xml"), ("*.XML", "/feed.xml"),
        ("/?.css", "/ab.css"), ("/[ab].css", "/c.css"), ("/a.css?v=*", "/a.css?v=1"), ("", "/a.css"),
    ],
)  # fmt: skip
def test_glob_is_compared_with_the_whole_path_case_sensitively(glob: str, target: str) -> None:
    assert outcome(target, Pages(include=(glob,))) == "not_a_page"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/admin", "excluded"), ("/admin/a", "excluded"), ("/private/feed.xml", "excluded"), ("/private", "/private"),
        ("/feed.xml", "/feed.xml"), ("/a.css", "excluded"),
        ("/b/index.html?b", "excluded"), ("https://example.com/b/", "excluded"),
    ],
)  # fmt: skip
def test_excluded_path_is_not_a_page_even_if_it_is_included_in_any_spelling(target: str, expected: str) -> None:
    assert outcome(target, Pages(("*.xml",), ("/admin*", "/private/*", "/a.css", "/b"))) == expected


@pytest.mark.timeout(60)
def test_hostile_glob_is_matched_in_bounded_time() -> None:
    assert outcome("/" + "a" * 2_000, Pages(exclude=("*a" * 60 + "b",))).startswith("/a")
