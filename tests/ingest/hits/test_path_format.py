"""The format of a response is known from the ending of its path."""

import pyarrow as pa
import pytest

from ingest.hits.path_format import path_format, path_formats

FORMATS = {
    "/a.md": "text/markdown",
    "/docs/README.MD": "text/markdown",
    "/a.markdown": "text/markdown",
    "/llms.txt": "text/markdown",
    "/docs/LLMS-full.txt": "text/markdown",
    "/": None,
    "/a": None,
    "/a.mdx": None,
    "/a.md/b": None,
    "/md": None,
    "/myllms.txt": None,
    "/robots.txt": None,
}


@pytest.mark.parametrize(("path", "format"), FORMATS.items())
def test_path_has_the_format_of_its_ending(path: str, format: str | None) -> None:
    assert path_format(path) == format


@pytest.mark.parametrize("paths", [[*FORMATS, "/a.md"], ["/", "/a.mdx"], []])
def test_column_of_paths_has_the_format_of_each(paths: list[str]) -> None:
    encoded = pa.array(paths, pa.string()).dictionary_encode()
    assert path_formats(encoded).to_pylist() == [FORMATS[path] for path in paths]
