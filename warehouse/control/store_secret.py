"""Random bytes of a store that key its hashes of request bodies.

Without them, a body could be found from its stored hash by trying all bodies.
"""

import secrets

from warehouse.control.database import statements
from warehouse.database.pool import Pool

SECRET_BYTES = 32
STATEMENTS = statements(__file__)


def read(control: Pool) -> bytes:
    """Return the secret of the store. The first call creates the secret, in one process only."""
    with control.connect() as connection:
        row = STATEMENTS.run(connection, "SECRET").fetchone()
        if row is None:
            STATEMENTS.run_alone(connection, "ADD", {"secret": secrets.token_bytes(SECRET_BYTES)})
            row = STATEMENTS.run(connection, "SECRET").fetchone()
    return bytes(row[0])
