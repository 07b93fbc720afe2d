"""Each seed and each input of the corpus passes through its target without a fault."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzzing.seeds import SEEDS
from tests.fuzzing.targets import OPEN, TARGETS

CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture(autouse=True, scope="module")
def _closed() -> Iterator[None]:
    with OPEN:
        yield


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_corpus_show_no_fault(name: str) -> None:
    for content in [*SEEDS[name], *(each.read_bytes() for each in sorted((CORPUS / name).glob("*")))]:
        TARGETS[name](content)
