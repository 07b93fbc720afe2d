"""The parameters, bodies, responses and schemas of the reference, without its texts, as they were stored.

python -m tests.api.reference.contract    # stores them, after a part was removed on purpose or some were added
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api.app import OPERATIONS
from api.reference.openapi import description

FILE = Path(__file__).with_name("contract.json")
TEXTS = {"description", "summary", "title", "example", "examples", "operationId", "tags"}


def present() -> dict[str, Any]:
    """Return the operations and schemas of this release, by their names."""
    document = json.loads(json.dumps(description(OPERATIONS)))
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    parts = operations | document["components"]["schemas"]
    return {name: _without_texts(part) for name, part in parts.items()}


def lost(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """Yield the places of `before` that `now` lacks. An item of a list may have any index."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name, part in before.items():
            yield from lost(part, now[name], f"{place}/{name}") if name in now else [f"{place}/{name}"]
    elif isinstance(before, list) and isinstance(now, list):
        for index, item in enumerate(before):
            if all(any(lost(item, each)) for each in now):
                yield f"{place}/{index} {item}"
    elif before != now:
        yield f"{place} {before!r}"


def _without_texts(part: Any, *, has_names: bool = False) -> Any:
    """Return a part of the document without its texts. With `has_names`, its keys are names of fields."""
    if isinstance(part, list):
        return [_without_texts(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {name: each for name, each in part.items() if has_names or name not in TEXTS}
    return {name: _without_texts(each, has_names=name == "properties") for name, each in kept.items()}


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(part, sort_keys=True)}" for name, part in sorted(present().items()))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
