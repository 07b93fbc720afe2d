"""Tables of the hot log, and the statements on them, which `warehouse.hotlog.connection.STATEMENTS` runs by name.

The order of the columns is that of SQLite files of older releases. Batch ids rise in commit order and without a gap: in
SQLite by AUTOINCREMENT, in PostgreSQL by a trigger that counts in a table which is named like SQLite's own.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert  # its ON CONFLICT has the same form in SQLite

METADATA = sa.MetaData()
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_REAL: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL, "sqlite")
_ZERO = sa.text("0")

NODE = sa.Table(
    "node",
    METADATA,
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("generation", _NUMBER, nullable=False, server_default=_ZERO),
    sa.Column("first_version", _NUMBER, nullable=False, server_default=_ZERO),
)
"""Table of one row: the node id, under which the lake records offsets, the generation of moments, which rises each time
that all moments are revoked, and the version of `hits` after the last erasure: versions before it have erased rows."""
BATCHES = sa.Table(
    "batches",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True),
    sa.Column("rows", _NUMBER, nullable=False),
    sa.Column("committed_s", _REAL, nullable=False),
    sa.Column("message", sa.LargeBinary, nullable=False),
    sa.Column("checksum", sa.LargeBinary),
    sa.Column("columns", _NUMBER),
    sa.Column("bytes", _NUMBER, nullable=False, server_default=_ZERO),
    sa.Index("batches_id_rows_bytes", "id", "rows", "bytes"),
    sqlite_autoincrement=True,
)
"""Table of batches. Rows and bytes of waiting batches are counted from the index, without reading their messages.
`columns` is null for a batch of an older release."""
STAGED = sa.Table(
    "staged",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True, autoincrement=False),
    sa.Column("files", sa.LargeBinary, nullable=False),
)
SYNCED_TABLES = sa.Table(
    "synced_tables",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", _NUMBER, nullable=False),
    sa.Column("last_batch", _NUMBER, nullable=False),
)
REFUSALS = sa.Table(
    "refusals",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True),
    sa.Column("internal_id", sa.Text, nullable=False, unique=True),
    sqlite_autoincrement=True,
)
LOADS = sa.Table(
    "loads",
    METADATA,
    sa.Column("through_id", _NUMBER, primary_key=True, autoincrement=False),
    sa.Column("loaded_s", _REAL, nullable=False),
    sa.Column("bytes", _NUMBER, nullable=False),
)
"""Table with a row for each load whose batches are in the hot log, and one for the newest load.

`through_id` is the last batch of the load, `loaded_s` its time in seconds since 1970, and `bytes` the size of its
batches, 0 once they are deleted.
"""
SEQUENCES = sa.Table(
    "sqlite_sequence",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("seq", _NUMBER, nullable=False),
    info={"only": "postgresql"},
)
"""Table of the highest ids ever used, by the name of their table."""


def _value(name: str, type: Any) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=type)


def _number(name: str) -> sa.BindParameter[Any]:
    return _value(name, _NUMBER)


_0, _1 = sa.literal_column("0", _NUMBER), sa.literal_column("1", _NUMBER)
_BATCHES = sa.literal_column("'batches'", sa.Text)
_LOADED = sa.select(sa.func.coalesce(sa.func.max(LOADS.c.through_id), _0)).scalar_subquery()

# The node

NODE_ID = sa.select(NODE.c.id)
ADD_NODE = sa.insert(NODE).inline().values(id=_value("id", sa.Text))
TOUCH_NODE = sa.update(NODE).values(id=NODE.c.id)
GENERATION = sa.select(NODE.c.generation)
FIRST_VERSION = sa.select(NODE.c.first_version)
REVOKE_MOMENTS = sa.update(NODE).values(generation=NODE.c.generation + _1, first_version=_number("version"))
RAISE_GENERATION = (
    sa.update(NODE).values(generation=_number("generation")).where(NODE.c.generation < _number("generation"))
)

# Batches

_BATCH = {
    "rows": _number("rows"),
    "committed_s": _value("now_s", _REAL),
    "message": _value("message", sa.LargeBinary),
    "checksum": _value("checksum", sa.LargeBinary),
    "columns": _number("columns"),
    "bytes": _number("bytes"),
}
APPEND = sa.insert(BATCHES).inline().values(_BATCH)
APPEND_IF_NONE_REFUSED = sa.insert(BATCHES).from_select(
    list(_BATCH),
    sa.select(*_BATCH.values()).where(~sa.exists(_1).where(REFUSALS.c.id > _number("last_refusal"))),
)
APPEND_RETURNING_ID = APPEND.returning(BATCHES.c.id)
ADD_STAGED = sa.insert(STAGED).inline().values(id=_number("id"), files=_value("files", sa.LargeBinary))
_CONTENTS = sa.select(
    BATCHES.c.id, BATCHES.c.message, BATCHES.c.columns, STAGED.c.files, BATCHES.c.checksum
).select_from(BATCHES.outerjoin(STAGED, BATCHES.c.id == STAGED.c.id))
BETWEEN = _CONTENTS.where(BATCHES.c.id > _number("offset"), BATCHES.c.id <= _number("last_id")).order_by(BATCHES.c.id)
# One bound: with two, SQLite reads the batches between them.
_WAITING_ABOVE = sa.case((_number("offset") > _LOADED, _number("offset")), else_=_LOADED)
WAITING = _CONTENTS.where(BATCHES.c.id > _WAITING_ABOVE).order_by(BATCHES.c.id)
WAITING_ROWS = (
    sa.select(BATCHES.c.id, BATCHES.c.rows, BATCHES.c.message, BATCHES.c.columns)
    .where(BATCHES.c.id > _LOADED, BATCHES.c.id.not_in(sa.select(STAGED.c.id)))
    .order_by(BATCHES.c.id)
)
STAGED_ABOVE = sa.select(STAGED).where(STAGED.c.id > _number("offset")).order_by(STAGED.c.id)
LAST_ID = sa.select(SEQUENCES.c.seq).where(SEQUENCES.c.name == _BATCHES)
RAISE_LAST_ID = (
    sa.update(SEQUENCES).values(seq=_number("id")).where(SEQUENCES.c.name == _BATCHES, SEQUENCES.c.seq < _number("id"))
)
ADD_LAST_ID = sa.insert(SEQUENCES).from_select(
    ["name", "seq"], sa.select(_BATCHES, _number("id")).where(~LAST_ID.with_only_columns(_1).exists())
)
FIRST_ID = sa.select(sa.func.min(BATCHES.c.id))
COUNT_WAITING = sa.select(
    sa.func.coalesce(sa.func.sum(BATCHES.c.rows), _0), sa.func.coalesce(sa.func.sum(BATCHES.c.bytes), _0)
).where(BATCHES.c.id > _number("loaded"))
OLDEST_WAITING = (
    sa.select(BATCHES.c.committed_s).where(BATCHES.c.id > _number("loaded")).order_by(BATCHES.c.id).limit(_1).offset(_0)
)
_FIRST = (
    sa.select(BATCHES.c.id, BATCHES.c.bytes)
    .where(BATCHES.c.id <= _number("through"))
    .order_by(BATCHES.c.id)
    .limit(_number("batches_max"))
    .offset(_0)
    .subquery("part")
)
_SUMS = sa.select(
    _FIRST.c.id, (sa.func.sum(_FIRST.c.bytes).over(order_by=_FIRST.c.id) - _FIRST.c.bytes).label("bytes_before")
).subquery("sums")
END_OF_PART = sa.select(sa.func.max(_SUMS.c.id)).where(_SUMS.c.bytes_before < _number("bytes_max"))
DELETE_BATCHES = sa.delete(BATCHES).where(BATCHES.c.id <= _number("through"))
DELETE_STAGED = sa.delete(STAGED).where(STAGED.c.id <= _number("through"))

# Loads

LOADED_THROUGH = sa.select(sa.func.coalesce(sa.func.max(LOADS.c.through_id), _0))
SIZE = (
    sa.select(sa.func.coalesce(sa.func.sum(BATCHES.c.bytes + sa.func.coalesce(sa.func.length(STAGED.c.files), _0)), _0))
    .select_from(BATCHES.outerjoin(STAGED, BATCHES.c.id == STAGED.c.id))
    .where(BATCHES.c.id > _number("after"), BATCHES.c.id <= _number("through"))
)
_LOAD = {"through_id": _number("through"), "loaded_s": _value("loaded_s", _REAL), "bytes": _number("bytes")}
ADD_LOAD = insert(LOADS).inline().values(_LOAD).on_conflict_do_nothing()
_SINCE = sa.select(
    LOADS.c.through_id,
    LOADS.c.loaded_s,
    LOADS.c.bytes,
    sa.func.sum(LOADS.c.bytes).over(order_by=LOADS.c.through_id.desc()).label("bytes_since"),
).subquery("since")
LAST_DUE = sa.select(sa.func.max(_SINCE.c.through_id)).where(
    _SINCE.c.bytes > _0,
    (sa.func.abs(_value("now_s", _REAL) - _SINCE.c.loaded_s) >= _value("age_s", _REAL))
    | (_SINCE.c.bytes_since > _number("bytes_max")),
)
EMPTY_LOADS = sa.update(LOADS).values(bytes=_0).where(LOADS.c.through_id <= _number("through"))
DELETE_EMPTY_LOADS = sa.delete(LOADS).where(
    LOADS.c.bytes == _0,
    LOADS.c.through_id < sa.select(sa.func.max(LOADS.alias("every").c.through_id)).scalar_subquery(),
)
DELETE_LOADS = sa.delete(LOADS)

# Refusals

ADD_REFUSAL = insert(REFUSALS).inline().values(internal_id=_value("internal_id", sa.Text)).on_conflict_do_nothing()
LAST_REFUSAL = sa.select(sa.func.coalesce(sa.func.max(REFUSALS.c.id), _0))
REFUSED = sa.select(REFUSALS.c.internal_id)
IS_REFUSED = sa.select(_1).where(REFUSALS.c.internal_id == _value("internal_id", sa.Text))

# Synced tables

SYNCED = sa.select(SYNCED_TABLES)
_RECORD = (
    insert(SYNCED_TABLES)
    .inline()
    .values(name=_value("name", sa.Text), version=_number("version"), last_batch=_number("last_batch"))
)
_STORED, _NEW = SYNCED_TABLES.c, _RECORD.excluded
RECORD_SYNCED = _RECORD.on_conflict_do_update(
    index_elements=["name"],
    set_={
        name: sa.case((_STORED[name] < _NEW[name], _NEW[name]), else_=_STORED[name])
        for name in ("version", "last_batch")
    },
    where=(_STORED.version < _NEW.version) | (_STORED.last_batch < _NEW.last_batch),
)
FORGET_SYNCED = sa.delete(SYNCED_TABLES)
