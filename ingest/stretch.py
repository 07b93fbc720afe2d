"""A log cut into stretches that are stored one by one, and what one says: its page views and what was skipped."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from ingest import log_columns
from ingest.errors import InvalidLine
from ingest.hit import Hit
from ingest.ledger import Fingerprint
from ingest.log_file import Content
from ingest.log_format import Format
from ingest.request import Pages, page_view

STRETCH_BLOCKS = 4
"""Blocks of a log that are stored together: some 32 MiB."""
MALFORMED_KEPT = 10
SAMPLED_EVERY_BYTES, SAMPLE_BYTES, SAMPLE_LINES_MAX = 256 * 1024, 4 * 1024, 100
"""Lines of under 40 bytes are short: a request, its time and its status take more."""
LINE_BYTES_MAX = 64 * 1024
"""No more of a line is looked at; with its end cut off it is malformed."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Blocks of a log as they follow each other.

    `is_within`: it begins inside of a line that was counted before. `is_last`: the log ends with it, for now.
    `is_growing`: a last line without an end waits for the rest, whatever it says so far.
    """

    blocks: Sequence[bytes]
    is_within: bool
    is_last: bool
    is_growing: bool = False


@dataclass(slots=True)
class Said:
    """What a stretch says. `views` are of `log_columns.VIEWS`; `malformed` has of the first of such lines the number
    within the stretch, from 1, and the reason. `is_cut`: it ends inside of a line, which is counted.

    A last line of the log that has no end and cannot be read is `unfinished`: it is not within `fingerprint`, and is
    read when the log has grown. One that can be read is counted."""

    views: pl.DataFrame
    lines: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: list[tuple[int, str]] = field(default_factory=list)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    is_cut: bool = False


def stretches(content: Content, is_within: bool, is_growing: bool = False) -> Iterator[Stretch]:
    """The rest of a log."""
    while blocks := _blocks(content):
        yield Stretch(blocks, is_within, is_last=not content.peek(1), is_growing=is_growing)
        is_within = not blocks[-1].endswith(b"\n")


def _blocks(content: Content) -> list[bytes]:
    blocks: list[bytes] = []
    while len(blocks) < STRETCH_BLOCKS and (block := content.lines()):
        blocks.append(block)
    return blocks


def read(stretch: Stretch, format: Format, pages: Pages) -> Said:
    """Every line of a stretch, as the parser of its format reads it; plain ones by columns."""
    said = Said(log_columns.of_hits([]), is_cut=stretch.is_within)
    frames: list[pl.DataFrame] = []
    for block in stretch.blocks:
        begin = block.find(b"\n") + 1 or len(block) if said.is_cut else 0
        end = block.rfind(b"\n") + 1 if stretch.is_last and block is stretch.blocks[-1] else len(block)
        lines, last = block[begin:end], block[max(begin, end) :]
        said.is_cut = not block.endswith(b"\n")
        frames += _views(lines if lines.endswith(b"\n") or not lines else lines + b"\n", format, pages, said)
        found = _last(last, format, pages, said) if last and not stretch.is_growing else []
        said.is_cut &= bool(found) or not last
        frames += found
        said.fingerprint.update(block if found or not last else block[: -len(last)])
    said.views = pl.concat(frames) if frames else said.views
    return said


def _last(line: bytes, format: Format, pages: Pages, said: Said) -> list[pl.DataFrame]:
    """What the last line of a log says although it has no end; nothing if it cannot be read, which is noted."""
    try:
        request = format.parse(line[:LINE_BYTES_MAX])
    except InvalidLine:
        said.lines += 1
        said.skipped["unfinished"] += 1
        return []
    parsed = Format(format.name, lambda line: request)  # some parsers remember a line, and would know it again
    views = log_columns.of_hits(_hits([line], [0], parsed, pages, said))
    said.lines += 1
    return [views]


def _views(block: bytes, format: Format, pages: Pages, said: Said) -> list[pl.DataFrame]:
    """The page views of whole lines, and the rest noted in `said`."""
    return [frame for piece in _pieces(block) for frame in _views_of(piece, format, pages, said)]


def _pieces(block: bytes) -> Iterator[bytes]:
    """The block; in pieces where its lines are so short that a list of all of them would be many times as large."""
    samples = range(0, len(block), SAMPLED_EVERY_BYTES)
    if all(block.count(b"\n", start, start + SAMPLE_BYTES) <= SAMPLE_LINES_MAX for start in samples):
        yield block
        return
    start = 0
    while start < len(block):
        end = block.find(b"\n", start + SAMPLED_EVERY_BYTES) + 1 or len(block)
        yield block[start:end]
        start = end


def _views_of(block: bytes, format: Format, pages: Pages, said: Said) -> list[pl.DataFrame]:
    shape = log_columns.SHAPES.get(format.name)
    if not block:
        return []
    if shape is None:
        lines = block.split(b"\n")[:-1]
        views = log_columns.of_hits(_hits(lines, range(len(lines)), format, pages, said))
        said.lines += len(lines)
        return [views]
    columns = log_columns.read(block, shape, pages)
    said.skipped.update(columns.skipped)
    lines = block.split(b"\n") if columns.left else []
    left = log_columns.of_hits(_hits(lines, columns.left, format, pages, said))
    said.lines += columns.lines
    return [columns.views, left]


def _hits(lines: Sequence[bytes], places: Sequence[int], format: Format, pages: Pages, said: Said) -> list[Hit]:
    """The hits of those of a block's lines that are page views."""
    hits = []
    for place in places:
        try:
            request = format.parse(lines[place][:LINE_BYTES_MAX])
            found = page_view(request, pages) if request else "not_a_request"
        except InvalidLine as error:
            said.skipped["malformed"] += 1
            if len(said.malformed) < MALFORMED_KEPT:
                said.malformed.append((said.lines + place + 1, str(error)))
            continue
        if isinstance(found, str):
            said.skipped[found] += 1
        else:
            hits.append(found)
    return hits
