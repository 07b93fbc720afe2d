"""The JSON of the report `coverage`. The reference shows the descriptions of the fields."""

from datetime import date, datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from warehouse.columns.sources import SOURCES
from warehouse.control import policy
from warehouse.control.policy import Policy
from warehouse.report.measured import HABIT_DAYS, SILENT_AFTER
from warehouse.report.source_warnings import MISSING_DAYS_MAX


class SourceCoverage(msgspec.Struct, frozen=True, rename="camel"):
    """A source of hits."""

    source: Annotated[str, Meta(description=f"One of {', '.join(f'`{each}`' for each in SOURCES)}.")]
    first_hit: Annotated[datetime, Meta(description="Time of the first hit.")]
    last_hit: Annotated[datetime, Meta(description="Time of the last hit.")]
    missing_days: Annotated[
        tuple[date, ...],
        Meta(
            description="UTC days without a hit between the first and the last hit; the last"
            f" {MISSING_DAYS_MAX:,} of them if there are more."
        ),
    ]
    silent_since: Annotated[
        date | None,
        Meta(
            description="First UTC day from which the source counts nothing, because it fell silent; null if it is not"
            f" silent. A source is silent after {SILENT_AFTER} times its usual distance from one day with a hit to the"
            f" next, in the {HABIT_DAYS} days up to its last hit."
        ),
    ]


class Span(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """A time in which readers were counted."""

    start: Annotated[datetime, Meta(description="When counting began.")]
    end: Annotated[datetime | None, Meta(description="When counting ended, exclusive; null if it did not end.")]


class MeasuredTimes(msgspec.Struct, frozen=True):
    """Times in which each kind of readers was counted, by any source under the source policy."""

    human: tuple[Span, ...]
    ai: tuple[Span, ...]
    bot: tuple[Span, ...]


class Coverage(msgspec.Struct, frozen=True, rename="camel"):
    """The sources that have sent hits."""

    sources: Annotated[list[SourceCoverage], Meta(description="The sources. One that never sent a hit is not listed.")]
    policy: Annotated[
        Policy,
        Meta(description="Today's policy. " + " ".join(f"`{name}`: {text}" for name, text in policy.TEXTS.items())),
    ]
    warnings: Annotated[tuple[str, ...], Meta(description="What the project's owner should check.")]
    overlap_days: Annotated[
        int, Meta(description="UTC days on which the website script and logs both have views of people.")
    ] = 0
    unbeaconed: Annotated[
        int,
        Meta(
            description="Views in logs that look like people and are not counted, because people count from the website"
            " script: programs with the user agent of a browser, and people whose browser did not run it."
        ),
    ] = 0
    measured: MeasuredTimes = MeasuredTimes((), (), ())
