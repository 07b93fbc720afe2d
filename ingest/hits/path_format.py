"""Format of a response by its path, for requests whose sender did not send a format."""

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

MARKDOWN = "text/markdown"
ENDINGS = (".md", ".markdown", "/llms.txt", "/llms-full.txt")
"""Endings of the paths of Markdown, in lower case. https://llmstxt.org defines llms.txt as a Markdown file."""


def path_format(path: str) -> str | None:
    """Return the media type that a path names, or None. A format does not change the class of a hit."""
    return MARKDOWN if "." in path and path.lower().endswith(ENDINGS) else None


def path_formats(paths: pa.DictionaryArray) -> pa.Array:
    """Return `path_format` of each path, once per distinct path."""
    lower = pc.ascii_lower(paths.dictionary)  # a normalised path is ASCII
    is_markdown = reduce(pc.or_, (pc.ends_with(lower, pattern=ending) for ending in ENDINGS))
    if not pc.any(is_markdown).as_py():
        return pa.nulls(len(paths), pa.string())
    formats = pc.if_else(is_markdown, MARKDOWN, pa.scalar(None, pa.string())).dictionary_encode()
    return pa.DictionaryArray.from_arrays(formats.indices.take(paths.indices), formats.dictionary)
