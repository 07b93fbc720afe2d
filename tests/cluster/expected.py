"""The number of hits of each path that was posted or imported."""

import threading
from collections.abc import Mapping


class Expected:
    """Numbers of hits by path. All hits of a path are stored or none of them. Threads may share an object.

    `certain` are acknowledged: the number is exact. `possible` were sent without an acknowledgement: 0 or the number.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._certain: dict[str, int] = {}
        self._possible: dict[str, int] = {}
        self._faults: list[str] = []

    def add_possible(self, path: str, count: int) -> None:
        """Record hits before they are sent."""
        with self._lock:
            self._possible[path] = count

    def acknowledge(self, path: str) -> None:
        """Record that the hits of a path are stored."""
        with self._lock:
            if path in self._possible:
                self._certain[path] = self._possible.pop(path)

    def fault(self, text: str) -> None:
        """Record something that must not happen."""
        with self._lock:
            self._faults.append(text)

    @property
    def faults(self) -> list[str]:
        with self._lock:
            return [*self._faults]

    @property
    def certain(self) -> dict[str, int]:
        """Return a copy."""
        with self._lock:
            return dict(self._certain)

    def differences(self, actual: Mapping[str, int], certain: Mapping[str, int] | None = None) -> list[str]:
        """Return the differences of the stored numbers, by path. `certain` are the hits that must be in them.

        By default these are all that are acknowledged now; readers use a copy from before they have read.
        """
        must = self.certain if certain is None else certain
        with self._lock:
            may = {**self._certain, **self._possible}
        lost = [f"{path}: {actual.get(path, 0)} of {n} hits" for path, n in must.items() if actual.get(path) != n]
        wrong = [
            f"{path}: {n} hits, {may.get(path, 0)} were sent"
            for path, n in actual.items()
            if path not in must and n != may.get(path)
        ]
        return lost + wrong
