"""Call of a function in a worker."""

import pickle
from collections.abc import Callable
from typing import TypeVar

from warehouse.errors import ItemFailed

Item = TypeVar("Item")
Result = TypeVar("Result")


def call(function: Callable[[Item], Result], item: Item) -> Result:
    """Return the result of a function. An error that cannot be unpickled would end the worker, and is replaced.

    Raises:
        ItemFailed: the function raised such an error.
    """
    try:
        return function(item)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301  # our own error
        except Exception:  # noqa: BLE001  # the constructor of an error may raise anything
            raise ItemFailed(str(error)) from None
        raise
