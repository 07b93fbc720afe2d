"""Table of the ledger of imported logs in the hot log, and the statements on it."""

from typing import Any

import sqlalchemy as sa

from warehouse.hotlog import schema_steps

METADATA = sa.MetaData()
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")

READ_LOGS = sa.Table(
    "read_logs",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True),
    sa.Column("project_id", sa.Text, nullable=False),
    sa.Column("parent", _NUMBER, nullable=False),
    sa.Column("first", sa.LargeBinary, nullable=False),
    sa.Column("bytes", _NUMBER, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("marks", sa.LargeBinary, nullable=False),
    sa.Column("is_cut", _NUMBER, nullable=False),
    sa.Column("read_s", _NUMBER, nullable=False),
    sa.Column("key_check", sa.LargeBinary, nullable=False),
    sa.Index("read_logs_after", "project_id", "parent", "first"),
    sqlite_autoincrement=True,
)
"""Table of chunks. `first` is the digest of the first line, `marks` are the checkpoints, and `is_cut` is 1 if the chunk
ends inside a line. `read_s` is the time at which the chunk was last read, in seconds since 1970. All digests are keyed,
and `key_check` differs between keys."""
UNKEYED_LOGS = sa.Table(
    schema_steps.UNKEYED_LOGS,
    sa.MetaData(),
    *(
        sa.Column(column.name, column.type)
        for column in READ_LOGS.columns
        if column.name not in {"read_s", "key_check"}
    ),
)
"""Table of the chunks of an older release, with unkeyed digests. The next command that has the secret keys and deletes
it: see `ingest.hotlog.ledger_store.prepare`."""


def _value(name: str, type: Any = _NUMBER) -> sa.BindParameter[Any]:
    return sa.bindparam(name, type_=type)


_OF_PROJECT = READ_LOGS.c.project_id == _value("project", sa.Text())
_NO_LINE = _value("no_line", sa.LargeBinary())
_FIRST = READ_LOGS.c.first == _value("first", sa.LargeBinary())
_1 = sa.literal_column("1", _NUMBER)
_LATER = READ_LOGS.alias("later")
_OF_CHUNK = _LATER.c.project_id == READ_LOGS.c.project_id, _LATER.c.parent == READ_LOGS.c.id
_IS_LAST = ~sa.exists(_1).where(*_OF_CHUNK).correlate(READ_LOGS)
_UNTIL = _value("until_s")
_SINCE = sa.select(READ_LOGS.c.parent).where(READ_LOGS.c.read_s >= _UNTIL).cte("since", recursive=True)
_SINCE = _SINCE.union(sa.select(READ_LOGS.c.parent).join(_SINCE, READ_LOGS.c.id == _SINCE.c.parent))
"""Ids of the chunks before those that were read since, up to the start of their logs, and 0."""

NEWEST_ID = sa.select(sa.func.coalesce(sa.func.max(READ_LOGS.c.id), sa.literal_column("0", _NUMBER)))
CHILDREN = (
    sa.select(READ_LOGS.c.id, READ_LOGS.c.bytes, READ_LOGS.c.digest, READ_LOGS.c.marks, READ_LOGS.c.is_cut)
    .where(_OF_PROJECT, READ_LOGS.c.parent == _value("parent"), _FIRST | (READ_LOGS.c.first == _NO_LINE))
    .order_by(READ_LOGS.c.bytes.desc())
)
RIVALS = sa.select(_1).where(
    _OF_PROJECT,
    (READ_LOGS.c.parent == _value("parent")) | (READ_LOGS.c.parent == _value("other_parent")),
    READ_LOGS.c.id > _value("newest_id"),
)
RIVALS_WITH_FIRST_LINE = RIVALS.where(_FIRST | (READ_LOGS.c.first == _NO_LINE))
UNCHANGED = sa.select(_1).where(READ_LOGS.c.id == _value("id"), READ_LOGS.c.bytes == _value("bytes"))
_CHUNK = {
    name: _value(name, READ_LOGS.c[name].type)
    for name in ("bytes", "digest", "marks", "first", "is_cut", "read_s", "key_check")
}
_ADDED = {"project_id": _value("project", sa.Text()), "parent": _value("parent"), **_CHUNK}
ADD = sa.insert(READ_LOGS).inline().values(_ADDED).returning(READ_LOGS.c.id)
ADD_KEYED = sa.insert(READ_LOGS).inline().values(id=_value("id"), **_ADDED)
EXTEND = (
    sa.update(READ_LOGS)
    .values(_CHUNK)
    .where(READ_LOGS.c.id == _value("id"), READ_LOGS.c.bytes == _value("bytes_before"), _IS_LAST)
)
UNKEYED = sa.select(UNKEYED_LOGS)
FOREIGN_UNTIL = sa.select(sa.func.coalesce(sa.func.max(READ_LOGS.c.read_s), sa.literal_column("0", _NUMBER))).where(
    _OF_PROJECT, READ_LOGS.c.key_check != _value("key_check", sa.LargeBinary())
)
DELETE_BEFORE = sa.delete(READ_LOGS).where(READ_LOGS.c.read_s < _UNTIL, READ_LOGS.c.id.not_in(sa.select(_SINCE)))
DELETE_OF_PROJECT = sa.delete(READ_LOGS).where(_OF_PROJECT)
