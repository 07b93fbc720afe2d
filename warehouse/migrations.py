"""Schema versions: numbered steps that bring a store of an older release to the newest version.

Each store records one number. Version 1 is Readership 0.1.0, which recorded none. A new store is created at the newest
version. An older one takes the steps above its version, one after the other; a newer one is refused and not changed.
Each room that owns a store has a list of steps: `warehouse.control.schema_steps`, `warehouse.hotlog.schema_steps`,
`warehouse.lake.table_schema`.

To change a schema: change the definition that new stores are created from, and append a step to the store's list.
A step never changes after its release. It must not use definitions that change with the code, such as `METADATA`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from warehouse.errors import StoreTooNew

FIRST = 1
"""Version of a store that records none: it was written by Readership 0.1.0."""

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Step(Generic[Target]):
    """One change of a store's schema, which brings the store to `version`."""

    version: int
    apply: Callable[[Target], None]


def newest(steps: Sequence[Step[Target]]) -> int:
    """Return the version after all steps."""
    assert [step.version for step in steps] == list(range(FIRST + 1, FIRST + 1 + len(steps))), "numbered without a gap"
    return FIRST + len(steps)


def pending(store: str, version: int, steps: Sequence[Step[Target]]) -> Sequence[Step[Target]]:
    """Return the steps that a store at `version` still needs. `store` names it in the error.

    Raises:
        StoreTooNew: a newer release wrote the store.
    """
    known = newest(steps)
    if version > known:
        raise StoreTooNew(
            f"{store} has schema version {version}, and this Readership knows versions up to {known}: "
            "install the release that wrote it, or a newer one; nothing was changed"
        )
    return steps[version - FIRST :]
