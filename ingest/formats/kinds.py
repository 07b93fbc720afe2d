"""Kinds of requests: what a path probably names."""

import re

from ingest.errors import InvalidLine
from ingest.formats.page_filter import is_asset, is_not_page, path_of
from ingest.formats.request import Request

KINDS = ("page", "markdown", "robots", "sitemap", "feed", "llms", "asset", "api", "other")
_FEED = re.compile(r"/(?:feed|rss|atom)(?:\.xml)?$|\.(?:rss|atom)$")
_LLMS = re.compile(r"/llms[^/]*\.txt$")
_MARKDOWN = re.compile(r"\.(?:md|mdx|markdown)$")
_SITEMAP = re.compile(r"/[^/]*sitemap[^/]*\.(?:xml|txt)(?:\.gz)?$")
_API = re.compile(r"^/(?:api|graphql|wp-json|rest)(?:/|$)|\.json$")
_KINDS = (("sitemap", _SITEMAP), ("feed", _FEED), ("llms", _LLMS), ("markdown", _MARKDOWN), ("api", _API))


def kind_of(request: Request) -> str:
    """Return the kind of a request, one of KINDS."""
    try:
        path = path_of(request.target)
    except InvalidLine:
        return "other"
    lower = path.lower()
    if lower == "/robots.txt":
        return "robots"
    if found := next((kind for kind, pattern in _KINDS if pattern.search(lower)), None):
        return found
    if is_asset(path):
        return "asset"
    return "other" if is_not_page(path) else "page"
