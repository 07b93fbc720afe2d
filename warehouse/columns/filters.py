"""The filters of a report, as one SQL predicate over any rows of cells."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from operator import and_
from typing import Any

from warehouse.columns import sources
from warehouse.columns.dimensions import FILTERS, OF_VISITS, PAGES, dimension
from warehouse.columns.sources import SOURCES, TRAFFIC
from warehouse.control.policy import COUNTED, DEFAULT, Periods, Policy

_LAST_CODE_POINT, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)
Bound = dict[str, Any]
"""Values that a statement binds, by name."""
OF_SETS = ("source", "evidence")
"""Filters that the sets of cells have, and no other column."""
_MASKS: Mapping[str, Callable[[str], int]] = {
    "traffic": sources.of_traffic,
    "source": sources.of_source,
    "evidence": sources.of_evidence,
}


@dataclass(frozen=True, slots=True, init=False)
class Filters:
    """Values that a page view must have to be counted, by the name of the dimension.

    PAGES are an exact path, a prefix with a `*` at its end (`/docs/*`), or a part between two (`*install*`). `policy`
    is the source policy of the project, by which every report counts.
    """

    items: tuple[tuple[str, str], ...] = ()
    policy: Periods = field(default=())

    def __init__(self, policy: Periods = (), **values: str | None) -> None:
        assert values.keys() <= {*FILTERS}, values
        items = ((name, value) for name in FILTERS if (value := values.get(name)) is not None)
        object.__setattr__(self, "items", tuple(items))
        object.__setattr__(self, "policy", policy)

    @property
    def fields(self) -> dict[str, str]:
        """Return the filters by name, in the order of FILTERS."""
        return dict(self.items)

    def __getitem__(self, name: str) -> str | None:
        """Return the value of a filter, or None if it is not set."""
        return self.fields.get(name)

    def but(self, **changes: Any) -> "Filters":
        """Return the filters with changes; None removes a filter. `policy` is one of the changes."""
        changed: dict[str, Any] = {"policy": self.policy, **self.fields, **changes}
        return Filters(**changed)

    @property
    def path(self) -> str | None:
        return self["path"]

    @property
    def selected_traffic(self) -> tuple[str, ...]:
        """Return the traffic that can match all filters: only AI agents have an operator."""
        return tuple(each for each in TRAFFIC if all(each in _readers(*item) for item in self.items))

    @property
    def selected_sources(self) -> tuple[str, ...]:
        """Return the sources that can match all filters: a beacon has no status."""
        recording = [dimension(name).recorded_by for name, _ in self.items]
        return tuple(each for each in SOURCES if self["source"] in {None, each} and all(each in of for of in recording))

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns of cells that `condition` reads."""
        names = {"sources" if name in OF_SETS else name for name, _ in self.items}
        return frozenset(names | ({"sources", "day"} if self.policy else set()))

    @property
    def by_evidence(self) -> bool:
        """Return whether `condition` depends on the evidence of people."""
        return self["evidence"] is not None or any(COUNTED[each.policy].only_confirmed for each in self.policy)

    @property
    def of_visits(self) -> bool:
        """Return whether `condition` depends on the visit of a view."""
        return not self.columns.isdisjoint(OF_VISITS)

    @property
    def by_format(self) -> bool:
        """Return whether a policy counts only some of the views of a visit: Markdown, or all but Markdown."""
        return any(COUNTED[each.policy].people != COUNTED[each.policy].markdown for each in self.policy)

    def condition(self) -> tuple[str, Bound]:
        """Return the predicate over cells, and the values that it binds. It is `true` without any filter."""
        bound = Bound()
        conditions = self.conditions(FILTERS, bound)
        if self.policy or any(self[name] for name in OF_SETS):
            conditions.append(f"sources & ({_by_period(self.policy, bound, self.mask)}) <> 0")
        return " AND ".join(conditions) or "true", bound

    def conditions(self, names: Collection[str], bound: Bound) -> list[str]:
        """Return the conditions of the filters by some dimensions, without OF_SETS, and add the values they bind."""
        conditions = list[str]()
        for name, value in self.items:
            if name in names and name in PAGES:
                conditions += match_path(value, bound, name, name)
            elif name in names and name not in OF_SETS:
                conditions.append(f"{name} = $only_{name}")
                bound[f"only_{name}"] = value
        return conditions

    def visitor_mask(self, kinds: Collection[str], bound: Bound) -> str:
        """Return the expression of the mask by which cells of visitors count some kinds of readers: see `visits`."""
        chosen = sources.of_traffic(*{*kinds} & {*self.selected_traffic})
        return f"({_by_period(self.policy, bound, lambda policy: self.mask(policy) & chosen)})"

    def mask(self, policy: Policy) -> int:
        """Return the mask of the sets that count on the days of a policy."""
        masks = (of(value) for name, of in _MASKS.items() if (value := self[name]))
        return reduce(and_, masks, sources.of_policy(policy))

    @property
    def policy_days(self) -> tuple[date, ...]:
        """Return the first days of the policies: a month in which one begins is counted by its days."""
        return tuple(each.from_date for each in self.policy)


def _readers(name: str, value: str) -> Collection[str]:
    """Return the traffic that can have a value. The name of a rule begins with its traffic, such as `ai:GPTBot`."""
    if name in {"traffic", "rule"}:
        return {value.partition(":")[0]}
    return {"bot"} if (name, value) == ("verification", "spoofed") else dimension(name).readers


def match_path(value: str, bound: Bound, name: str = "path", column: str = "path") -> Iterator[str]:
    """Yield the conditions of a filter by path, and add the values that they bind, whose names end in `name`."""
    if value.startswith("*"):
        bound[f"part_of_{name}"] = value[1:].removesuffix("*")
        yield f"contains({column}, $part_of_{name})"
    elif not value.endswith("*"):
        bound[f"only_{name}"] = value
        yield f"{column} = $only_{name}"
    else:  # as a range, because DuckDB then reads only the row groups that can contain such a path
        bound[f"first_{name}"] = value[:-1]
        yield f"{column} >= $first_{name}"
        if after := _after_prefix(value[:-1]):
            bound[f"after_{name}"] = after
            yield f"{column} < $after_{name}"


def _by_period(policy: Periods, bound: Bound, mask: Callable[[Policy], int]) -> str:
    """Return the expression of the mask of the policy of a day."""
    if not policy:
        return str(mask(DEFAULT))
    starts = {f"policy_from_{number}": each for number, each in enumerate(policy)}
    bound |= {name: each.from_date for name, each in starts.items()}
    cases = (f"WHEN day >= ${name} THEN {mask(each.policy)}" for name, each in reversed(starts.items()))
    return f"CASE {' '.join(cases)} ELSE {mask(DEFAULT)} END"


def _after_prefix(prefix: str) -> str | None:
    """Return the first text in byte order after all texts that start with `prefix`; None if there is no such text.

    The byte order of UTF-8 is the order of the code points.
    """
    stem = prefix.rstrip(chr(_LAST_CODE_POINT))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
