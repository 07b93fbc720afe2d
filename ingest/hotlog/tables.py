"""Tables of event ids, Idempotency-Keys and new values in the hot log, and the statements on them."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert  # its ON CONFLICT has the same form in SQLite

from ingest.hits.hit import DEDUPLICATION_DAYS

METADATA = sa.MetaData()
MANY = 100
"""Number of event ids that one statement finds or adds."""
REMEMBERED_S = DEDUPLICATION_DAYS * 24 * 3600
"""Time in seconds for which event ids and Idempotency-Keys are remembered."""
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

EVENT_IDS = sa.Table(
    "event_ids",
    METADATA,
    sa.Column("id", sa.LargeBinary, primary_key=True),
    sa.Column("seen_s", _NUMBER, nullable=False),
    sa.Index("event_ids_seen", "seen_s"),
    sqlite_with_rowid=False,
)
ANSWERS = sa.Table(
    "answers",
    METADATA,
    sa.Column("project_id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    sa.Column("receipt", sa.LargeBinary, nullable=False),
    sa.Column("seen_s", _NUMBER, nullable=False),
    sqlite_with_rowid=False,
)
SEEN_VALUES = sa.Table(
    "seen_values",
    METADATA,
    sa.Column("id", sa.LargeBinary, primary_key=True),
    sa.Column("day", _NUMBER, nullable=False),
    sa.Index("seen_values_day", "day"),
    sqlite_with_rowid=False,
)
"""Values of hits without a key, each with the last day on which it was stored: see `ingest.hotlog.new_values`."""
NEW_VALUE_DAYS = sa.Table(
    "new_value_days",
    METADATA,
    sa.Column("project_id", sa.Text, primary_key=True),
    sa.Column("day", _NUMBER, primary_key=True),
    sa.Column("column", sa.Text, primary_key=True),
    sa.Column("values", _NUMBER, nullable=False),
    sa.Column("other_hits", _NUMBER, nullable=False),
    sqlite_with_rowid=False,
)
"""Numbers of new values by project, day and column, and of hits whose value was above the limit."""

_ID, _NOW = sa.bindparam("id", type_=sa.LargeBinary), sa.bindparam("now_s", type_=_NUMBER)
_SINCE, _UNTIL = sa.bindparam("since_s", type_=_NUMBER), sa.bindparam("until_s", type_=_NUMBER)
_0 = sa.literal_column("0", _NUMBER)
_LIMIT = sa.bindparam("limit", type_=_NUMBER)
_PROJECT, _KEY = sa.bindparam("project", type_=sa.Text), sa.bindparam("key", type_=sa.Text)
_FIRST, _LAST = sa.bindparam("first", type_=sa.LargeBinary), sa.bindparam("last", type_=sa.LargeBinary)


def _add_event_ids(count: int) -> sa.Insert:
    """Return the statement that adds the event ids `id0`, `id1` ..., and renews those that have expired."""
    new = insert(EVENT_IDS).inline().values([{"id": id, "seen_s": _NOW} for id in _ids(count)])
    expired = EVENT_IDS.c.seen_s <= new.excluded.seen_s - sa.literal_column(str(REMEMBERED_S), _NUMBER)
    return new.on_conflict_do_update(index_elements=["id"], set_={"seen_s": new.excluded.seen_s}, where=expired)


def _ids(count: int) -> list[sa.BindParameter[bytes]]:
    return [sa.bindparam(f"id{number}", type_=sa.LargeBinary) for number in range(count)]


ADD_EVENT_ID = _add_event_ids(1)
ADD_MANY_EVENT_IDS = _add_event_ids(MANY)
KNOWN_EVENT_IDS = sa.select(EVENT_IDS.c.id).where(
    EVENT_IDS.c.id.in_(_ids(MANY)),
    EVENT_IDS.c.seen_s + _0 > _SINCE,  # without `+ 0`, SQLite would search by time and not by id
)
ADD_KNOWN_EVENT_ID = insert(EVENT_IDS).inline().values(id=_ID, seen_s=_NOW).on_conflict_do_nothing()
_PART = sa.select(EVENT_IDS.c.id).limit(_LIMIT).offset(_0)
DELETE_EXPIRED_EVENT_IDS = sa.delete(EVENT_IDS).where(EVENT_IDS.c.id.in_(_PART.where(EVENT_IDS.c.seen_s <= _UNTIL)))
DELETE_EVENT_IDS_OF_PROJECT = sa.delete(EVENT_IDS).where(
    EVENT_IDS.c.id.in_(_PART.where(EVENT_IDS.c.id.between(_FIRST, _LAST)))
)

EARLIER_ANSWER = sa.select(ANSWERS.c.fingerprint, ANSWERS.c.receipt).where(
    ANSWERS.c.project_id == _PROJECT, ANSWERS.c.key == _KEY, ANSWERS.c.seen_s > _SINCE
)
_ANSWER = (
    insert(ANSWERS)
    .inline()
    .values(
        project_id=_PROJECT,
        key=_KEY,
        fingerprint=sa.bindparam("fingerprint", type_=sa.LargeBinary),
        receipt=sa.bindparam("receipt", type_=sa.LargeBinary),
        seen_s=_NOW,
    )
)
ADD_ANSWER = _ANSWER.on_conflict_do_update(
    index_elements=["project_id", "key"],
    set_={name: _ANSWER.excluded[name] for name in ("fingerprint", "receipt", "seen_s")},
)
_KEYS = sa.select(ANSWERS.c.project_id, ANSWERS.c.key).limit(_LIMIT).offset(_0)
_COLUMNS = sa.tuple_(ANSWERS.c.project_id, ANSWERS.c.key)
DELETE_EXPIRED_ANSWERS = sa.delete(ANSWERS).where(_COLUMNS.in_(_KEYS.where(ANSWERS.c.seen_s <= _UNTIL)))
DELETE_ANSWERS_OF_PROJECT = sa.delete(ANSWERS).where(_COLUMNS.in_(_KEYS.where(ANSWERS.c.project_id == _PROJECT)))

_UNTIL_DAY = sa.bindparam("until_day", type_=_NUMBER)
_DAY, _COLUMN = sa.bindparam("day", type_=_NUMBER), sa.bindparam("column", type_=sa.Text)
SEEN_VALUE = sa.select(SEEN_VALUES.c.id, SEEN_VALUES.c.day).where(SEEN_VALUES.c.id == _ID)
_SEEN = insert(SEEN_VALUES).inline().values(id=_ID, day=_DAY)
ADD_SEEN_VALUE = _SEEN.on_conflict_do_update(index_elements=["id"], set_={"day": _SEEN.excluded.day})
_SEEN_PART = sa.select(SEEN_VALUES.c.id).limit(_LIMIT).offset(_0)
DELETE_UNSEEN_VALUES = sa.delete(SEEN_VALUES).where(
    SEEN_VALUES.c.id.in_(_SEEN_PART.where(SEEN_VALUES.c.day <= _UNTIL_DAY))
)
DELETE_VALUES_OF_PROJECT = sa.delete(SEEN_VALUES).where(
    SEEN_VALUES.c.id.in_(_SEEN_PART.where(SEEN_VALUES.c.id.between(_FIRST, _LAST)))
)
NEW_VALUES = sa.select(NEW_VALUE_DAYS.c["values"]).where(
    NEW_VALUE_DAYS.c.project_id == _PROJECT, NEW_VALUE_DAYS.c.day == _DAY, NEW_VALUE_DAYS.c.column == _COLUMN
)
_NEW = (
    insert(NEW_VALUE_DAYS)
    .inline()
    .values(
        project_id=_PROJECT,
        day=_DAY,
        column=_COLUMN,
        values=sa.bindparam("values", type_=_NUMBER),
        other_hits=sa.bindparam("hits", type_=_NUMBER),
    )
)
COUNT_NEW_VALUES = _NEW.on_conflict_do_update(
    index_elements=["project_id", "day", "column"],
    set_={name: NEW_VALUE_DAYS.c[name] + _NEW.excluded[name] for name in ("values", "other_hits")},
)
CAPPED_DAYS = (
    sa.select(NEW_VALUE_DAYS.c.day, NEW_VALUE_DAYS.c.column, NEW_VALUE_DAYS.c.other_hits)
    .where(NEW_VALUE_DAYS.c.project_id == _PROJECT, NEW_VALUE_DAYS.c.other_hits > _0)
    .order_by(NEW_VALUE_DAYS.c.day, NEW_VALUE_DAYS.c.column)
)
_NEW_KEY = sa.tuple_(NEW_VALUE_DAYS.c.project_id, NEW_VALUE_DAYS.c.day, NEW_VALUE_DAYS.c.column)
_NEW_PART = sa.select(*_NEW_KEY).limit(_LIMIT).offset(_0)
DELETE_OLD_VALUE_DAYS = sa.delete(NEW_VALUE_DAYS).where(
    _NEW_KEY.in_(_NEW_PART.where(NEW_VALUE_DAYS.c.day <= _UNTIL_DAY))
)
DELETE_VALUE_DAYS_OF_PROJECT = sa.delete(NEW_VALUE_DAYS).where(
    _NEW_KEY.in_(_NEW_PART.where(NEW_VALUE_DAYS.c.project_id == _PROJECT))
)
