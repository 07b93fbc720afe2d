"""Responses of all reports: JSON documents and tables, with the headers for caching and for the moment."""

import hashlib
from collections.abc import Callable, Iterable
from itertools import chain

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api.http.cors import AS_OF, EXPOSED
from api.http.headers import matches_etag
from api.http.operation import CSV, JSON, NDJSON, PARQUET
from api.reports import threads
from api.reports.formats import FORMATS, rebatched
from warehouse.query.moment import Moment

MEDIA_TYPES = (JSON, CSV, PARQUET, NDJSON)
"""Media types of a report that is also a table, the preferred one first."""


def document(request: Request, moment: Moment, content: msgspec.Struct) -> Response:
    """Return a report as JSON, or 304 if the request has its ETag."""
    encoded = msgspec.json.encode(content)
    headers = _headers(moment, [encoded])
    return _not_modified(request, headers) or Response(encoded, 200, headers, JSON)


def table(
    request: Request,
    moment: Moment,
    media_type: str,
    name: str,
    schema: pa.Schema,
    batches: Callable[[], Iterable[pa.RecordBatch]],
) -> Response:
    """Return a streaming response with a table, or 304 if the request has its ETag.

    `batches` is called twice, for the ETag and for the content, because the rows may not fit into memory. Each call
    yields the rows with at least the columns of `schema`.
    """
    form = FORMATS[media_type]
    # Encoded as msgpack, because equal Arrow arrays may have different bytes.
    rows = (msgspec.msgpack.encode(batch.to_pydict()) for batch in rebatched(schema, batches()))
    headers = _headers(moment, chain([media_type.encode()], rows))
    disposition = {"Content-Disposition": f'attachment; filename="{name}.{form.suffix}"'}
    return _not_modified(request, headers) or StreamingResponse(
        threads.streamed(threads.REPORTS, form.chunks(schema, rebatched(schema, batches()))),
        200,
        {**headers, **disposition},
        media_type,
    )


def _headers(moment: Moment, content: Iterable[bytes]) -> dict[str, str]:
    """Return the headers of a response. Its ETag is a hash of the numbers, and equal in all processes.

    The ETag is weak, because the response may be compressed.
    """
    digest = hashlib.blake2b(digest_size=16)
    for chunk in content:
        digest.update(chunk)
    return {
        "ETag": f'W/"{digest.hexdigest()}"',
        "Cache-Control": "private, no-cache",
        "Vary": "Accept, Authorization",
        AS_OF: str(moment),
        **EXPOSED,
    }


def _not_modified(request: Request, headers: dict[str, str]) -> Response | None:
    return Response(status_code=304, headers=headers) if matches_etag(request, headers["ETag"]) else None
