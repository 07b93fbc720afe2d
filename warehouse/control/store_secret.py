"""Random bytes of a store that key its hashes of request bodies.

Without them, a body could be found from its stored hash by trying all bodies.
"""

import secrets

import sqlalchemy as sa

from warehouse.control.database import METADATA, transaction

SECRET_BYTES = 32
_ONLY_ROW = 1
STORE_SECRETS = sa.Table(
    "store_secrets",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("secret", sa.LargeBinary(SECRET_BYTES), nullable=False),
)
"""Table of one row."""


def read(engine: sa.Engine) -> bytes:
    """Return the secret of the store. The first call creates the secret, in one process only."""
    if (known := _stored(engine)) is not None:
        return known
    row = {"id": _ONLY_ROW, "secret": secrets.token_bytes(SECRET_BYTES)}
    try:
        with transaction(engine) as connection:
            connection.execute(STORE_SECRETS.insert().values(row))
    except sa.exc.IntegrityError:
        pass  # another process created the secret at the same time
    stored = _stored(engine)
    assert stored is not None
    return stored


def _stored(engine: sa.Engine) -> bytes | None:
    with engine.connect() as connection:
        return connection.execute(sa.select(STORE_SECRETS.c.secret)).scalar_one_or_none()
