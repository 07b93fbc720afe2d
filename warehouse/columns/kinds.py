"""Kinds of requests, guessed from the path."""

import re

KINDS = ("page", "markdown", "robots", "sitemap", "feed", "llms", "asset", "api", "other")
NOT_PAGES = frozenset(
    (
        "css js mjs cjs map wasm "
        "png jpg jpeg gif svg webp avif ico bmp tif tiff heic "
        "woff woff2 ttf otf eot "
        "mp3 mp4 m4a m4v webm ogg oga ogv wav flac mov avi mkv "
        "zip gz tgz bz2 xz zst 7z rar tar dmg exe msi deb rpm pkg iso apk jar bin "
        "xml rss atom json jsonl csv"
    ).split()
)
"""Extensions of files that a page loads or links to: styles, scripts, images, fonts, media, archives, feeds, data."""
ASSETS = frozenset("css js mjs wasm woff woff2 ttf otf eot png jpg jpeg gif svg webp avif".split())
"""Extensions of styles, scripts, fonts and images: a browser loads these to show a page, and a script that reads pages
does not. Of the other files, people download archives and media by themselves, feeds and data are read by programs, and
only developer tools load source maps. Icons are no evidence either (ICONS): readers of feeds and previews of links load
them without the page."""
ICONS = ("/favicon", "/apple-touch-icon")
NOT_PAGE_PATHS = frozenset({"/robots.txt", "/ads.txt", "/humans.txt"})
NOT_PAGE_FOLDER = "/.well-known/"
_FEED = re.compile(r"/(?:feed|rss|atom)(?:\.xml)?$|\.(?:rss|atom)$")
_LLMS = re.compile(r"/llms[^/]*\.txt$")
_MARKDOWN = re.compile(r"\.(?:md|mdx|markdown)$")
_SITEMAP = re.compile(r"/[^/]*sitemap[^/]*\.(?:xml|txt)(?:\.gz)?$")
_API = re.compile(r"^/(?:api|graphql|wp-json|rest)(?:/|$)|\.json$")
_KINDS = (("sitemap", _SITEMAP), ("feed", _FEED), ("llms", _LLMS), ("markdown", _MARKDOWN), ("api", _API))


def kind_of(path: str) -> str:
    """Return the kind of a request for a normalised path, one of KINDS."""
    lower = path.lower()
    if lower == "/robots.txt":
        return "robots"
    if found := next((kind for kind, pattern in _KINDS if pattern.search(lower)), None):
        return found
    if is_asset(path):
        return "asset"
    return "other" if is_not_page(path) else "page"


def is_not_page(path: str) -> bool:
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    return bool(dot and extension.lower() in NOT_PAGES) or path in NOT_PAGE_PATHS or path.startswith(NOT_PAGE_FOLDER)


def is_asset(path: str) -> bool:
    stem, _, extension = path.rpartition(".")
    return extension.lower() in ASSETS and not stem[stem.rfind("/") :].startswith(ICONS)
