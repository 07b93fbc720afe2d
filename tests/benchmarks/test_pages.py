"""The benchmark of the dashboard's pages, on a small lake."""

import pytest

from benchmarks import pages
from benchmarks.lake import Lake

pytestmark = pytest.mark.night


def test_every_page_is_measured_with_its_size_and_the_memory_of_the_server(generated: Lake) -> None:
    figures = {each.name: each for each in pages.measure(generated, runs=1, requests=1)}
    assert len(figures) == 3 * len(pages.PAGES) + 2
    assert all(figures[name].median > 0 for name in pages.PAGES)
    assert all(figures[f"{name}, size"].median > 1 for name in pages.PAGES)
    assert not list(generated.folder.glob("copy-*"))
