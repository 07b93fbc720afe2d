"""The export of page views: one page as JSON, or all paths as CSV or Parquet."""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.http import auth, report_parameters
from api.http.headers import matches_etag
from api.http.negotiation import accepted
from api.http.operation import (
    ADDRESS,
    IF_NONE_MATCH,
    JSON,
    KEY_OPTION,
    NOT_MODIFIED,
    Content,
    HasMore,
    Operation,
    Parameter,
    Success,
    json_content,
    paging,
)
from api.http.report_parameters import ViewsQuery
from api.state import state_of
from warehouse.query.report import Ranking

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
ROWS_PER_CHUNK = 10_000

Human = Annotated[int, msgspec.Meta(description="Views by people.")]
Ai = Annotated[int, msgspec.Meta(description="Views by AI agents.")]
Total = Annotated[int, msgspec.Meta(description="`human` plus `ai`.")]


class Totals(msgspec.Struct, frozen=True):
    """Views of all paths in the time range."""

    human: Human
    ai: Ai
    total: Total


class PathViews(msgspec.Struct, frozen=True):
    """Views of one path."""

    path: Annotated[str, msgspec.Meta(description="The page's path.")]
    human: Human
    ai: Ai
    total: Total


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Views in a time range: the totals, and one page of the paths."""

    totals: Annotated[Totals, msgspec.Meta(description="Totals of the whole time range, on every page.")]
    views: Annotated[list[PathViews], msgspec.Meta(description="One page of the paths, most viewed first.")]
    has_more: HasMore


async def export(request: Request) -> Response:
    """Respond to GET /v1/analytics/{projectId}/views."""
    state = state_of(request)
    project = request.path_params["projectId"]
    await auth.key_for(request, state.keyring, project, "read")
    query = report_parameters.views_query(request, ("dateFrom", "dateTo", "limit", "offset"))
    media_type = accepted(request, (JSON, CSV, PARQUET), "the report")
    return await run_in_threadpool(lambda: _respond(request, media_type, query, _ranking(request, project, query)))


def _ranking(request: Request, project: str, query: ViewsQuery) -> Ranking:
    return state_of(request).reports.ranking(project, query.selection.start, query.selection.end, datetime.now(UTC))


def _respond(request: Request, media_type: str, query: ViewsQuery, ranking: Ranking) -> Response:
    content = msgspec.json.encode(report(ranking, query.limit, query.offset)) if media_type == JSON else b""
    etag = _etag([content] if content else chain([media_type.encode()], _csv(ranking)))
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    if matches_etag(request, etag):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, JSON) if content else _table(media_type, ranking, headers)


def report(ranking: Ranking, limit: int, offset: int) -> Report:
    """Return one page of a ranking, with the totals of the whole ranking."""
    rows = ranking.paths.slice(offset, limit).to_pylist() if offset < ranking.paths.num_rows else []
    return Report(
        Totals(ranking.human, ranking.ai, ranking.human + ranking.ai),
        [PathViews(**row) for row in rows],
        has_more=offset + limit < ranking.paths.num_rows,
    )


def _table(media_type: str, ranking: Ranking, headers: dict[str, str]) -> Response:
    """Return a streaming response with all paths."""
    chunks, suffix = (_csv(ranking), "csv") if media_type == CSV else (_parquet(ranking.paths), "parquet")
    disposition = {"Content-Disposition": f'attachment; filename="views.{suffix}"'}
    return StreamingResponse(chunks, 200, {**headers, **disposition}, media_type)


def _csv(ranking: Ranking) -> Iterator[bytes]:
    """Yield the chunks of a CSV file (RFC 4180) with a header line."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(ranking.paths.column_names)
    for batch in ranking.paths.to_batches(ROWS_PER_CHUNK):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _parquet(paths: pa.Table) -> Iterator[bytes]:
    """Yield the chunks of a Parquet file."""
    sink = _Sink()
    with pq.ParquetWriter(sink, paths.schema) as writer:
        for batch in paths.to_batches(ROWS_PER_CHUNK):
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A write-only file whose content is taken in chunks."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, chunk: Any) -> int:
        self._chunks.append(bytes(chunk))
        self._position += len(chunk)
        return len(chunk)

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)


def _etag(chunks: Iterable[bytes]) -> str:
    """Return the ETag of a response: a hash of its content, equal in all processes."""
    digest = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        digest.update(chunk)
    return f'"{digest.hexdigest()}"'


_DATE = {"anyOf": [{"format": "date"}, {"format": "date-time"}]}
OPERATIONS = (
    Operation(
        id="exportViews",
        method="GET",
        path="/v1/analytics/{projectId}/views",
        handler=export,
        tag="Read",
        summary="Export page views",
        description="""\
Views of each path by people and AI agents, from `dateFrom` up to, but not including, `dateTo`. Bots are not counted:
`total` is `human` plus `ai`. Every hit that got a `202` before the request is included. The operation requires a key
with the scope `read` or `write`.

- Paths are sorted by `total`, descending, then by their bytes. `totals` are those of the whole time range, on every
  page.
- All of September is `dateFrom=2026-09-01&dateTo=2026-10-01`. Without `dateFrom` the range begins with the first hit;
  without `dateTo` it ends now.
- While `hasMore` is true, add `limit` to `offset` for the next page. Page n begins at `offset = (n - 1) * limit`.
- With `Accept: text/csv` or `application/vnd.apache.parquet` the response is a table of all paths, with the columns
  `path`, `human`, `ai` and `total`; `limit` and `offset` have no effect.
- Send the `ETag` of a response as `If-None-Match`: if nothing has changed, the response is an empty `304`.
""",
        samples={
            "The second page of 50 paths": f"""\
curl "{ADDRESS}/v1/analytics/demo/views?dateFrom=2026-09-01&offset=50" {KEY_OPTION}""",
            "September as CSV": f"""\
curl "{ADDRESS}/v1/analytics/demo/views?dateFrom=2026-09-01&dateTo=2026-10-01" {KEY_OPTION} \\
  -H "Accept: text/csv\"""",
            "All views as Parquet": f"""\
curl {ADDRESS}/v1/analytics/demo/views {KEY_OPTION} \\
  -H "Accept: application/vnd.apache.parquet" -o views.parquet""",
        },
        parameters=(
            Parameter("dateFrom", "First day, or ISO 8601 time, of the range.", _DATE, example="2026-09-01"),
            Parameter("dateTo", "Day or time at which the range ends, exclusive.", _DATE, example="2026-10-01"),
            *paging("Paths"),
            IF_NONE_MATCH,
        ),
        responses=(
            Success(
                200,
                "The counts.",
                {
                    **json_content(
                        Report(Totals(812, 377, 1189), [PathViews("/docs/hello", 61, 180, 241)], has_more=True)
                    ),
                    CSV: Content(example="path,human,ai,total\r\n/docs/hello,61,180,241\r\n"),
                    PARQUET: Content({"type": "string", "contentMediaType": PARQUET}),
                },
                ("ETag", "Cache-Control"),
            ),
            NOT_MODIFIED,
        ),
        problems="invalid-parameter unauthenticated forbidden not-acceptable moment-expired data-incomplete",
    ),
)
