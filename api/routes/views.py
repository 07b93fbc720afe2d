"""The page-view report out: a page of it as JSON, or every path as CSV or Parquet."""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.http import auth, parameters
from api.http.headers import knows
from api.http.negotiation import accepted
from api.http.parameters import ViewsQuery
from api.state import state_of
from warehouse.query.report import Ranking

JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"
ROWS_A_CHUNK = 10_000


class Totals(msgspec.Struct, frozen=True):
    """Views of the whole range, whatever the page."""

    human: int
    ai: int
    total: int


class PathViews(msgspec.Struct, frozen=True):
    """Views of one path."""

    path: str
    human: int
    ai: int
    total: int


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Views of a range of time: its totals, and a page of its paths."""

    totals: Totals
    views: list[PathViews]
    has_more: bool


async def export(request: Request) -> Response:
    """GET /v1/analytics/{projectId}/views"""
    state = state_of(request)
    project = request.path_params["projectId"]
    await auth.key_for(request, state.keyring, project, "read")
    query = parameters.views_query(request)
    kind = accepted(request, (JSON, CSV, PARQUET), "the report")
    return await run_in_threadpool(lambda: _answer(request, kind, query, _ranking(request, project, query)))


def _ranking(request: Request, project: str, query: ViewsQuery) -> Ranking:
    return state_of(request).reports.ranking(project, query.start, query.end, datetime.now(UTC))


def _answer(request: Request, kind: str, query: ViewsQuery, ranking: Ranking) -> Response:
    content = msgspec.json.encode(report(ranking, query.limit, query.offset)) if kind == JSON else b""
    tag = _tag([content] if content else chain([kind.encode()], _csv(ranking)))
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    if knows(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, JSON) if content else _whole(kind, ranking, headers)


def report(ranking: Ranking, limit: int, offset: int) -> Report:
    """A page of a ranking; its totals are of the whole."""
    rows = ranking.paths.slice(offset, limit).to_pylist() if offset < ranking.paths.num_rows else []
    return Report(
        Totals(ranking.human, ranking.ai, ranking.human + ranking.ai),
        [PathViews(**row) for row in rows],
        has_more=offset + limit < ranking.paths.num_rows,
    )


def _whole(kind: str, ranking: Ranking, headers: dict[str, str]) -> Response:
    named = {
        **headers,
        "Content-Disposition": f'attachment; filename="views.{kind[-3:] if kind == CSV else "parquet"}"',
    }
    return StreamingResponse(_csv(ranking) if kind == CSV else _parquet(ranking.paths), 200, named, kind)


def _csv(ranking: Ranking) -> Iterator[bytes]:
    """RFC 4180, with a header line."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(ranking.paths.column_names)
    for batch in ranking.paths.to_batches(ROWS_A_CHUNK):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _parquet(paths: pa.Table) -> Iterator[bytes]:
    sink = _Sink()
    with pq.ParquetWriter(sink, paths.schema) as writer:
        for batch in paths.to_batches(ROWS_A_CHUNK):
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A file that hands over what was written to it, a piece at a time."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._pieces.append(bytes(piece))
        self._position += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._position

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _tag(content: Iterable[bytes]) -> str:
    """An ETag of what the answer says: equal answers of all workers have equal ones."""
    digest = hashlib.blake2b(digest_size=16)
    for piece in content:
        digest.update(piece)
    return f'"{digest.hexdigest()}"'
