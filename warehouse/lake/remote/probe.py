"""Check that a store refuses the second writer of an object.

Each commit of a Delta table is an object that is written only if it does not exist. In a store that ignores this
condition, two commits of one version would both succeed, and the rows of the first would be lost without an error.
"""

import uuid

from warehouse.errors import UnsafeStore
from warehouse.lake.remote.object_path import ObjectPath

FOLDER = "_probe"
"""Folder in the lake of the objects that the check writes and deletes."""


def require_conditional_put(lake: ObjectPath) -> None:
    """Write one new object twice, and check that the store accepts the first write only.

    Raises:
        UnsafeStore: the store accepts both writes, or neither.
        LakeUnreachable: the store does not answer, or refuses the credentials.
    """
    object_ = lake / FOLDER / str(uuid.uuid4())
    try:
        written = [object_.write_new(b"first"), object_.write_new(b"second")]
    finally:
        object_.unlink(missing_ok=True)
    if written != [True, False]:
        count = "two writers" if all(written) else "no writer"
        raise UnsafeStore(
            f"the object store of {lake} lets {count} create an object that must be created once, which would lose "
            "hits: use a store with conditional writes (If-None-Match)"
        )
