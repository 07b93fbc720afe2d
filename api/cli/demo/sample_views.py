"""The views of the sample projects, with recent days: lines of the sample log, and the posts that no log has.

Each view has one source. From BEACONS_FROM on, the views by people in the sample log are stored as beacons, and their
lines are not imported: the demo counts no view twice.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pyarrow as pa

from ingest.errors import InvalidLine
from ingest.formats import clf
from ingest.formats.page_filter import ERRORS, page_view
from ingest.formats.request import Request
from ingest.hits.evidence import Evidence
from ingest.hits.hit import Hit, ServerHit, microseconds, server_hit
from ingest.hits.row import TRAFFIC, no_salts, row
from ingest.hotlog import deduplication
from ingest.hotlog.deduplication import Post
from ingest.verification.public_keys import JsonWebKey, usable_keys
from ingest.verification.verifier import Verifier
from ingest.visitors.visitor import Salt, SaltsOf
from warehouse.database.transaction import transaction
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection
from warehouse.schema import HOT, Row
from warehouse.tables import EVENTS_TABLE, HITS_TABLE, Spec

FOLDER = Path(__file__).parents[3] / "sample_data"
LOG, POSTS, SIGNING_KEY = FOLDER / "access.log", FOLDER / "posts.ndjson", FOLDER / "signing_key.json"
SIGNING_HOST = "chatgpt.com"
"""Host in whose name SIGNING_KEY signs requests of POSTS. Only the demo accepts this key, because everybody has it."""
LAST_DAY = date(2026, 9, 30)
"""Last whole day of the sample, in UTC."""
BEACONS_FROM = datetime(2026, 9, 16, tzinfo=UTC)
"""Time in the sample from which beacons count people, and the log only AI and other bots."""
TIME = HOT.names.index("ts")
PLACES = (
    *(("Europe/Berlin", "de"),) * 4,
    *(("America/New_York", "en-US"),) * 3,
    *(("Europe/London", "en-GB"), ("America/Sao_Paulo", "pt-BR")) * 2,
    *(("Europe/Paris", "fr"), ("Europe/Zurich", "de-CH"), ("Asia/Tokyo", "ja"), ("Asia/Kolkata", "en-IN")),
)
"""Time zone and language of the people of beacons and posts, by the checksum of their address or time."""
EVENTS = {
    "/docs/quickstart": ("Signup", '{"plan": "free"}'),
    "/docs/deploy/docker": ("Signup", '{"plan": "team"}'),
    "/docs/install": ("Outbound Link: Click", '{"url": "https://github.com/example/larkspur"}'),
}
"""Names and properties of the sample events, by page."""
LOG_FORMAT = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
    " $request_time $upstream_cache_status"
)
_DAY = re.compile(rb"\[(\d\d/[A-Z][a-z]{2}/\d{4}):")
_DAY_FORMAT, _WEEK_US = "%d/%b/%Y", 604_800_000_000
ToRow = Callable[..., Row]


class SampleHit(ServerHit, frozen=True, forbid_unknown_fields=True, rename="camel", gc=False, kw_only=True):
    """A line of POSTS: the fields of a post, its project and its source."""

    project: str
    source: str


def days_moved(today: date) -> timedelta:
    """Return the time by which the sample moves, so that its last whole day is yesterday."""
    return today - timedelta(days=1) - LAST_DAY


def write_log(target: Path, project: str, moved: timedelta, now_us: int, to_row: ToRow = row) -> list[Row]:
    """Write the sample log, moved, in LOG_FORMAT, but return views by people since BEACONS_FROM as beacons."""
    lines, beacons, cached = [], list[Row](), dict[str, int]()
    for line in LOG.read_bytes().split(b"\n")[:-1]:
        request = None
        with suppress(InvalidLine):
            request = clf.parse(line)
        if request and (view := _beacon(request, project, moved, now_us, to_row)):
            beacons.append(view)
        else:
            lines.append(line + (_answer(request, cached) if request else b"") + b"\n")
    target.write_bytes(_DAY.sub(lambda match: _moved(match[1], moved), b"".join(lines)))
    return beacons


def posted(moved: timedelta, now_us: int, salts_of: SaltsOf = no_salts) -> Iterator[Row]:
    """Yield the rows of the posts of all projects, moved.

    Agents are verified at the times of the sample: only then are the address lists of the release fresh, and the
    signatures valid.
    """
    decoder, key = msgspec.json.Decoder(SampleHit), msgspec.json.decode(SIGNING_KEY.read_bytes(), type=JsonWebKey)
    verifier = Verifier(known_keys={id: (SIGNING_HOST, public) for id, public in usable_keys([key]).items()})
    moved_us = moved // timedelta(microseconds=1)

    def of_moved(project: str, days: Iterable[int]) -> dict[int, Salt]:
        return {day - moved.days: salt for day, salt in salts_of(project, [day + moved.days for day in days]).items()}

    for sent in decoder.decode_lines(POSTS.read_bytes()):
        assert sent.timestamp is not None
        hit = server_hit(msgspec.structs.replace(sent, timestamp=sent.timestamp + moved), now_us)
        hit = hit._replace(evidence=_evidence(sent.address or sent.timestamp.isoformat(), hit.evidence))
        values = row(sent.project, hit._replace(ts_us=hit.ts_us - moved_us), sent.source, now_us, verifier, of_moved)
        yield (*values[:TIME], hit.ts_us, *values[TIME + 1 :])


def events(beacons: Sequence[Row]) -> Iterator[Row]:
    """Yield what a third of the people of the beacons did on the pages of EVENTS, a minute after they opened them."""
    for values in beacons:
        fields: dict[str, Any] = dict(zip(HOT.names, values, strict=True))
        event = EVENTS.get(fields["path"])
        if event and fields["ts"] // 1_000_000 % 3 == 0:
            fields |= {"name": event[0], "props": event[1], "interactive": True, "ts": fields["ts"] + 60_000_000}
            yield tuple(fields[name] for name in EVENTS_TABLE.hot.names)


def store(hot: HotConnection, rows: list[Row], now_s: int, spec: Spec = HITS_TABLE) -> None:
    """Store rows of a table in the hot log, once: rows that were stored within the last week are not stored again."""
    new: list[Row] = []
    with transaction(hot):
        for project, of_project in groupby(sorted(rows, key=itemgetter(0)), itemgetter(0)):
            post = Post(project, list(of_project), [], f"sample {spec.name}", spec=spec)
            deduplication.deduplicate(hot, post, new, now_s)
        if new:
            columns = pa.table([list(values) for values in zip(*new, strict=True)], spec.hot.names).cast(spec.hot)
            batches.append(hot, columns.to_batches()[0], now_s, spec)


def _answer(request: Request, cached: dict[str, int]) -> bytes:
    """Return the time and cache state of a request. The sample site caches a response for a week after each use."""
    is_hit = request.ts_us - cached.get(request.target, 0) < _WEEK_US
    cached[request.target] = request.ts_us
    number = crc32(request.target.encode())
    return b" 0.%03d %s" % ((1 + number % 8, b"HIT") if is_hit else (20 + number % 380, b"MISS"))


def _beacon(request: Request, project: str, moved: timedelta, now_us: int, to_row: ToRow) -> Row | None:
    """Return the row of a request that is a view by a person since BEACONS_FROM, with the source `beacon`."""
    view = page_view(request)
    if request.ts_us < microseconds(BEACONS_FROM) or not isinstance(view, Hit):
        return None
    if view.path[:1] != "/" or view.status in ERRORS:
        return None
    moved_us = view.ts_us + moved // timedelta(microseconds=1)
    address = view.evidence.address
    sent = view._replace(ts_us=moved_us, status=None, evidence=_evidence(address, Evidence(address)))
    values = to_row(project, sent, "beacon", now_us)
    return values if values[TRAFFIC] == "human" else None


def _evidence(reader: str | None, evidence: Evidence) -> Evidence:
    """Return evidence with the time zone and language that the browser of a reader sends, always the same."""
    time_zone, language = PLACES[crc32((reader or "").encode()) % len(PLACES)]
    return evidence._replace(language=language, time_zone=time_zone)


def _moved(day: bytes, moved: timedelta) -> bytes:
    try:
        moved_day = datetime.strptime(day.decode(), _DAY_FORMAT) + moved  # noqa: DTZ007  # a day has no zone
    except ValueError:  # one of the sample's malformed lines
        return b"[" + day + b":"
    return f"[{moved_day:{_DAY_FORMAT}}:".encode()
