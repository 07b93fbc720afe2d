"""What a stretch of a log says, block by block: its page views, and what was skipped."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ingest.errors import InvalidLine
from ingest.formats.detect import Format
from ingest.formats.page_filter import Pages, page_view
from ingest.hits.hit import Hit
from ingest.imports import columnar
from ingest.imports.request_cache import Memory
from ingest.imports.rows import of_hits
from ingest.imports.source import Content

MALFORMED_KEPT = 10
SAMPLED_EVERY_BYTES, SAMPLE_BYTES, SAMPLE_LINES_MAX = 256 * 1024, 4 * 1024, 100
"""Lines of under 40 bytes are short: a request, its time and its status take more."""
LINE_BYTES_MAX = 64 * 1024
"""No more of a line is looked at; with its end cut off it is malformed."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some of a log.

    `is_within`: it begins inside of a line that was counted before. `is_last`: the log ends with it, for now.
    `is_growing`: a last line without an end waits for the rest, whatever it says so far.
    """

    data: bytes
    is_within: bool
    is_last: bool
    is_growing: bool = False


@dataclass(slots=True)
class Said:
    """What a block says, or the blocks of a stretch. `views` are of `page_views.VIEWS`; `malformed` has of the first
    of such lines the number within it, from 1, and the reason. `bytes` were read of it. `is_cut`: it ends inside of a
    line, which is counted.

    A last line of the log that has no end and cannot be read is `unfinished`: it is not within `bytes`, and is read
    when the log has grown. One that can be read is counted."""

    views: pa.Table
    lines: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: list[tuple[int, str]] = field(default_factory=list)
    bytes: int = 0
    is_cut: bool = False


def blocks(content: Content, is_within: bool, is_growing: bool = False) -> Iterator[Block]:
    """The rest of a log. One is let go here before the next is read."""
    while data := content.lines():
        begins_within, is_within = is_within, not data.endswith(b"\n")
        block = Block(data, begins_within, is_last=not content.peek(1), is_growing=is_growing)
        del data
        yield block
        del block


def read(block: Block, format: Format, memory: Memory) -> Said:
    """Every line of a block, as the parser of its format reads it; plain ones by columns."""
    data = block.data
    begin = data.find(b"\n") + 1 or len(data) if block.is_within else 0
    end = data.rfind(b"\n") + 1 if block.is_last else len(data)
    lines, last = data[begin:end], data[max(begin, end) :]
    said = Said(of_hits([]), bytes=len(data), is_cut=not data.endswith(b"\n"))
    if lines and not lines.endswith(b"\n"):
        lines = lines[: lines.rfind(b"\n") + 1 + LINE_BYTES_MAX] + b"\n"
    frames = _views(lines, format, memory, said)
    if last:
        found = [] if block.is_growing else _last(last, format, memory, said)
        frames += found
        said.is_cut = bool(found)
        said.bytes -= 0 if found else len(last)
    said.views = pa.concat_tables(frames) if frames else said.views
    return said


def joined(parts: Sequence[Said]) -> Said:
    """What blocks that follow each other say together."""
    said = Said(pa.concat_tables([part.views for part in parts]), is_cut=parts[-1].is_cut)
    for part in parts:
        room = MALFORMED_KEPT - len(said.malformed)
        said.malformed += [(said.lines + number, reason) for number, reason in part.malformed[:room]]
        said.lines += part.lines
        said.skipped.update(part.skipped)
        said.bytes += part.bytes
    return said


def _last(line: bytes, format: Format, memory: Memory, said: Said) -> list[pa.Table]:
    """What the last line of a log says although it has no end; nothing if it cannot be read, which is noted."""
    try:
        request = format.parse(line[:LINE_BYTES_MAX])
    except InvalidLine:
        said.lines += 1
        said.skipped["unfinished"] += 1
        return []
    parsed = Format(format.name, lambda line: request)  # some parsers remember a line, and would know it again
    views = of_hits(_hits([line], [0], parsed, memory.pages, said))
    said.lines += 1
    return [views]


def _views(block: bytes, format: Format, memory: Memory, said: Said) -> list[pa.Table]:
    """The page views of whole lines, and the rest noted in `said`."""
    return [frame for piece in _pieces(block) for frame in _views_of(piece, format, memory, said)]


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


def _views_of(block: bytes, format: Format, memory: Memory, said: Said) -> list[pa.Table]:
    shape = columnar.SHAPES.get(format.name)
    if not block:
        return []
    if shape is None:
        lines = block.split(b"\n")[:-1]
        views = of_hits(_hits(lines, range(len(lines)), format, memory.pages, said))
        said.lines += len(lines)
        return [views]
    columns = columnar.read(block, shape, memory)
    said.skipped.update(columns.skipped)
    left = _hits(block.split(b"\n"), columns.left, format, memory.pages, said) if columns.left else []
    said.lines += columns.lines
    return [columns.views, of_hits(left)] if left else [columns.views]


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
