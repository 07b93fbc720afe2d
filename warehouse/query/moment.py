"""Moments: which commit of `hits` and which hot batches a report was computed from.

The text of a moment is the header `X-As-Of` of an answer and the query parameter `asOf` of a request. It is valid in
every process with the same hot log and lake, because it names only numbers of the stored data.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from warehouse.errors import InvalidMoment, MomentExpired
from warehouse.hotlog.retention import AS_OF_S

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
_TEXT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)_(\d{1,18})_(\d{1,18})(?:_(\d{1,18}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """The rows of `hits` at `version`, and the hot batches up to `last_id` that this version lacks.

    `staged` is the last of these batches whose rows are in staged files, 0 without any; it follows from the other
    fields and is not in the text. `taken_us` is in microseconds since 1970. `generation` rises
    each time that rows are erased or lost, which revokes all earlier moments.
    """

    version: int
    last_id: int
    staged: int = field(compare=False)
    taken_us: int
    generation: int = 0

    def __str__(self) -> str:
        """Return the text, such as 2026-09-01T12:00:00.123456Z_41_1077. The generation is its last part unless 0."""
        time = (_EPOCH + self.taken_us * _MICROSECOND).strftime(_TIME_FORMAT)
        return "_".join(map(str, (time, self.version, self.last_id, *filter(None, [self.generation]))))

    @classmethod
    def parse(cls, text: str) -> "Moment":
        """Return the moment of a text, with `staged` 0. Raises InvalidMoment."""
        match = _TEXT.fullmatch(text)
        try:
            moment = cls._from_parts(*match.groups()) if match else None
        except ValueError:  # such as the 31st of February
            moment = None
        if moment is None or str(moment) != text:
            raise InvalidMoment("it is not a moment, such as 2026-09-01T12:00:00.123456Z_41_1077")
        return moment

    def require_readable(self, newest: "Moment", first_version: int) -> None:
        """Check that the moment is not older than AS_OF_S or `first_version`, and not later than the newest one.

        Raises:
            MomentExpired: the moment is too old, or rows were erased since.
            InvalidMoment: the moment has not been reached. The clock may have been set back by less than AS_OF_S.
        """
        age_us = newest.taken_us - self.taken_us
        if age_us > AS_OF_S * 1_000_000:
            raise MomentExpired(f"the moment {self} is more than {AS_OF_S // 60} minutes old")
        if self.generation < newest.generation or self.version < first_version:
            raise MomentExpired(f"rows were erased after the moment {self}")
        is_ahead = self.version > newest.version or self.last_id > newest.last_id
        if is_ahead or self.generation > newest.generation or age_us < -AS_OF_S * 1_000_000:
            raise InvalidMoment(f"the moment {self} has not been reached")

    def require_batches(self, offset: int) -> None:
        """Raise InvalidMoment if the moment is before the batch `offset`, the last one in its version."""
        if self.last_id < offset:
            raise InvalidMoment(f"the moment {self} does not exist: its version has later hits")

    @classmethod
    def _from_parts(cls, time: str, version: str, last_id: str, generation: str | None) -> "Moment":
        taken = datetime.strptime(time, _TIME_FORMAT).replace(tzinfo=UTC)
        return cls(int(version), int(last_id), 0, (taken - _EPOCH) // _MICROSECOND, int(generation or 0))
