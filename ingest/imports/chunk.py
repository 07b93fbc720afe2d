"""Parsing the blocks of a log: hits, and the number of skipped lines by reason."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ingest.errors import InvalidLine
from ingest.formats.detect import Format, skip_blank
from ingest.formats.page_filter import Pages, page_view
from ingest.formats.request import LINE_BYTES_MAX, Request
from ingest.hits.hit import Hit
from ingest.imports.columns import combined, json_lines
from ingest.imports.columns.asked import asked_table
from ingest.imports.columns.page_views import ParsedLines
from ingest.imports.columns.separators import pieces_of, positions
from ingest.imports.log_stream import BLOCK_BYTES, LogStream
from ingest.imports.request_cache import RequestCache
from ingest.imports.rows import ViewCounts, hits_table

END_BYTES = 2 * BLOCK_BYTES
"""Size of the last chunk of a long log, in bytes. The last chunk is short, because no block is parsed while it is
prepared."""
MALFORMED_SHOWN = 10
"""Maximum number of malformed lines that a result describes."""
MalformedLine = tuple[str, int, str]
"""File, line number from 1, reason."""
SAMPLED_EVERY_BYTES = 256 * 1024
"""Distance between the samples of a block, in bytes."""
SAMPLE_BYTES = 4 * 1024
"""Size of a sample, in bytes."""
SAMPLE_LINES_MAX = 100
"""Maximum number of lines in a sample of ordinary lines. More lines have under 41 bytes on average, too few for a
request, its time and its status."""
_IS_TEXT = np.array([not bytes([each]).isspace() for each in range(256)])
"""Whether a byte makes a line more than a blank line."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a log that is parsed as a whole.

    `starts_mid_line`: it starts inside a line that was counted before. `is_last`: the log ends with this block, for
    now. `is_before_end`: it is the first block after which the log is known to have at most END_BYTES. `is_growing`: a
    last line without a line end is left for the next block, even if it can be parsed.
    """

    data: bytes
    starts_mid_line: bool
    is_last: bool
    is_growing: bool = False
    is_before_end: bool = False


@dataclass(slots=True)
class ParseResult:
    """Hits (`rows.PARSED_HITS`) and counts of a block, or of the blocks of a chunk.

    A hit is a page view, a request for a page that was answered with an error, or the load of an asset or a download.

    `malformed` has the first malformed lines, each by its number within the block, from 1, and the reason. `bytes` is
    the number of bytes read. `ends_mid_line`: the block ends inside a line, which is counted. `cut` is the number of
    hits with a text that was cut to its maximum length.

    A last line of the log that has no line end and cannot be parsed is counted as `unfinished`. Its bytes
    are not in `bytes`, and it is read again when the log has grown. If the line can be parsed, it is counted as any
    other line.
    """

    hits: pa.Table
    lines: int = 0
    requests: list[pa.Table] = field(default_factory=list)
    """Requests of all lines (`asked.ASKED`), in parts."""
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: list[tuple[int, str]] = field(default_factory=list)
    bytes: int = 0
    ends_mid_line: bool = False
    cut: int = 0


@dataclass(slots=True)
class Summary:
    """Counts of an import, updated after each chunk.

    `known` lines were read by an earlier import, and are not among `lines`. `errors` are the requests of AI agents and
    bots for pages that were answered with an error. `cut` is the number of hits with a text that was cut to its maximum
    length. `malformed` has the first malformed lines, `formats` the format of each file, and `unreadable` the reason
    for each followed file that could not be read at the last poll.
    """

    lines: int = 0
    known: int = 0
    human: int = 0
    ai: int = 0
    bot: int = 0
    errors: int = 0
    cut: int = 0
    agents: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: list[MalformedLine] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)

    @property
    def page_views(self) -> int:
        return self.human + self.ai + self.bot

    def add(self, result: ParseResult, views: ViewCounts, errors: int) -> None:
        """Add the counts of a chunk; its malformed lines are added by the caller, who knows the file."""
        self.lines += result.lines
        self.skipped.update(result.skipped)
        self.errors += errors
        self.cut += result.cut
        for (traffic, agent), count in views.items():
            self.human += count if traffic == "human" else 0
            self.bot += count if traffic == "bot" else 0
            self.ai += count if traffic == "ai" else 0
            if traffic == "ai" and agent is not None:  # a request for Markdown may name no agent
                self.agents[agent] += count


def split(source: LogStream, starts_mid_line: bool, is_growing: bool = False) -> Iterator[Block]:
    """Yield the rest of a log as blocks. The generator releases each block before it reads the next one."""
    while data := source.take_lines():
        starts_here, starts_mid_line = starts_mid_line, not data.endswith(b"\n")
        left = source.size - source.taken
        block = Block(data, starts_here, not source.peek(1), is_growing, 0 < left <= END_BYTES < left + len(data))
        del data
        yield block
        del block


def parse(block: Block, format: Format, requests: RequestCache) -> ParseResult:
    """Parse the lines of a block by columns, or with the parser of their format. Both give the same result."""
    data = block.data
    begin = data.find(b"\n") + 1 or len(data) if block.starts_mid_line else 0
    end = data.rfind(b"\n") + 1 if block.is_last else len(data)
    lines, last_line = data[begin:end], data[max(begin, end) :]
    result = ParseResult(hits_table([]), bytes=len(data), ends_mid_line=not data.endswith(b"\n"))
    if lines and not lines.endswith(b"\n"):
        lines = lines[: lines.rfind(b"\n") + 1 + LINE_BYTES_MAX] + b"\n"
    parse_piece = _parse_short if (are_short := _are_short(lines)) else _parse_lines
    pieces = map(bytes, pieces_of(lines, SAMPLED_EVERY_BYTES)) if are_short else [lines]
    tables = [table for piece in pieces for table in parse_piece(piece, format, requests, result)]
    if last_line:
        is_counted = not block.is_growing and _parse_last(last_line, format, requests, result, tables)
        result.ends_mid_line = is_counted
        result.bytes -= 0 if is_counted else len(last_line)
    result.hits = pa.concat_tables(tables) if tables else result.hits
    return result


def join(parts: Sequence[ParseResult]) -> ParseResult:
    """Join the results of consecutive blocks into one."""
    result = ParseResult(pa.concat_tables([part.hits for part in parts]), ends_mid_line=parts[-1].ends_mid_line)
    for part in parts:
        room = MALFORMED_SHOWN - len(result.malformed)
        result.malformed += [(result.lines + number, reason) for number, reason in part.malformed[:room]]
        result.lines += part.lines
        result.requests += part.requests
        result.skipped.update(part.skipped)
        result.bytes += part.bytes
        result.cut += part.cut
    return result


def _parse_last(
    line: bytes, format: Format, requests: RequestCache, result: ParseResult, tables: list[pa.Table]
) -> bool:
    """Parse the last line of a log, which has no line end; return False if the line is unfinished."""
    try:
        request = format.parse(line[:LINE_BYTES_MAX])
    except InvalidLine:
        result.skipped["unfinished"] += 1
        result.lines += 1
        return False
    parsed = Format(format.name, lambda line: request)  # some parsers skip a line whose request they have seen
    tables.append(hits_table(_hits([line], [0], parsed, requests.pages, result)))
    result.lines += 1
    return True


def _are_short(lines: bytes) -> bool:
    """Return whether many lines are so short that a list of them would be large."""
    samples = range(0, len(lines), SAMPLED_EVERY_BYTES)
    return any(lines.count(b"\n", start, start + SAMPLE_BYTES) > SAMPLE_LINES_MAX for start in samples)


def _parse_short(lines: bytes, format: Format, requests: RequestCache, result: ParseResult) -> list[pa.Table]:
    """Do the same as `_parse_lines`, but count blank lines at once: one by one they are read at 3 MB/s."""
    characters, ends = np.frombuffer(lines, np.uint8), positions(lines, b"\n")
    sizes = np.diff(ends, prepend=-1)
    has_text = np.logical_or.reduceat(_IS_TEXT[characters], ends + 1 - sizes)
    blank, before, described = int(np.count_nonzero(~has_text)), result.lines, len(result.malformed)
    tables = _parse_lines(characters[np.repeat(has_text, sizes)].tobytes(), format, requests, result)
    numbers = before + 1 + np.flatnonzero(has_text)
    result.malformed[described:] = [
        (int(numbers[number - before - 1]), reason) for number, reason in result.malformed[described:]
    ]
    result.lines += blank
    result.skipped += Counter(not_a_request=blank)
    return tables


def _parse_lines(lines: bytes, format: Format, requests: RequestCache, result: ParseResult) -> list[pa.Table]:
    """Return the hits of whole lines, and count the other lines in `result`."""
    if not lines:
        return []
    columns = _parse_columns(lines, format, requests)
    if columns is None:
        each = lines.split(b"\n")[:-1]
        hits = hits_table(_hits(each, range(len(each)), format, requests.pages, result))
        result.lines += len(each)
        return [hits]
    result.skipped.update(columns.skipped)
    result.requests.append(columns.requests)
    parser = format if format.json is None else Format(format.name, skip_blank(format.json.parse_new))
    hits = _hits(lines.split(b"\n"), columns.unparsed, parser, requests.pages, result) if columns.unparsed else []
    result.lines += columns.lines
    return [columns.hits, hits_table(hits)] if hits else [columns.hits]


def _parse_columns(lines: bytes, format: Format, requests: RequestCache) -> ParsedLines | None:
    """Parse whole lines by columns; return None if the format has no such parser."""
    if format.json is not None:
        return json_lines.parse(lines, format.json, requests)
    shape = combined.SHAPES.get(format.name)
    return None if shape is None else combined.parse(lines, shape, requests)


def _hits(lines: list[bytes], places: Sequence[int], format: Format, pages: Pages, result: ParseResult) -> list[Hit]:
    """Return the hits of the lines at these places, and count the lines without a hit in `result`."""
    hits, asked = [], list[Request]()
    for place in places:
        try:
            request = format.parse(lines[place][:LINE_BYTES_MAX])
            view = page_view(request, pages) if request else "not_a_request"
        except InvalidLine as error:
            result.skipped["malformed"] += 1
            if len(result.malformed) < MALFORMED_SHOWN:
                result.malformed.append((result.lines + place + 1, str(error)))
            continue
        if request:
            asked.append(request)
        if isinstance(view, str):
            result.skipped[view] += 1
        else:
            hits.append(view)
            result.cut += bool(view.cut and view.path[:1] == "/")
    if asked:
        result.requests.append(asked_table(asked))
    return hits
