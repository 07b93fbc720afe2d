"""The prose of the reference: a Markdown file for each operation, with its summary, description, samples and examples.

The first heading is the summary. Each other heading is the title of a sample (`Try it` if there is only one), or
`Example:` with the place (`body` or a status), the media type and a name if there are several.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from agent.jobs import quota
from api.http.operation import CSV, JSON, Json
from api.settings import Settings
from ingest.hits import body, event, hit, url
from warehouse.columns import hits
from warehouse.report.time_buckets import BUCKETS_MAX

FOLDER = Path(__file__).parent / "prose"
VALUES = {
    "hits_max": f"{body.HITS_MAX:,}",
    "body_mib": body.BODY_BYTES_MAX >> 20,
    "beacon_kib": body.BEACON_BYTES_MAX >> 10,
    "beacon_path_characters_max": hit.BEACON_PATH_CHARACTERS_MAX,
    "beacons_per_minute": Settings.beacons_per_minute,
    "buckets_max": f"{BUCKETS_MAX:,}",
    "deduplication_days": hit.DEDUPLICATION_DAYS,
    "name_characters_max": event.NAME_CHARACTERS_MAX,
    "names_per_day": f"{event.NAMES_PER_DAY:,}",
    "props_max": event.PROPS_MAX,
    "key_characters_max": event.KEY_CHARACTERS_MAX,
    "value_characters_max": f"{event.VALUE_CHARACTERS_MAX:,}",
    "beacon_props_characters_max": f"{event.BEACON_PROPS_CHARACTERS_MAX:,}",
    "parameter_characters_max": hits.PARAMETER_CHARACTERS_MAX,
    "parameters": ", ".join(hits.PARAMETERS),
    "path_characters_max": f"{url.PATH_CHARACTERS_MAX:,}",
    "text_characters_max": f"{hit.TEXT_CHARACTERS_MAX:,}",
    "uses_max": quota.USES_MAX,
}
"""Limits that the files name."""
SHARED = ("_metrics.md", "_measured.md", "_filters.md", "_tables.md", "_moment.md")
"""Files with the texts that reports share."""
_FILES = Environment(loader=FileSystemLoader(FOLDER), undefined=StrictUndefined, autoescape=False)  # noqa: S701
_INCLUDE = re.compile(r"^{% include .+\n", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_ITEM = re.compile(r"^- ", re.MULTILINE)
_BLOCK = re.compile(r"^## ([^\n]+)\n\n```\w*\n(.*?)```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prose:
    """Texts of an operation. `own` is the description without the texts that reports share.

    `samples` are shell commands by their titles; a single one has an empty title. `examples` are members of
    a media type in OpenAPI, by place and media type: `("200", "text/csv")`.
    """

    summary: str
    description: str
    own: str
    samples: Mapping[str, str]
    examples: Mapping[tuple[str, str], Json]


@cache
def of(operation: str) -> Prose:
    """Return the prose of an operation, by its id."""
    text = rendered(f"{operation}.md")
    summary = text.removeprefix("# ").partition("\n")[0]
    samples: dict[str, str] = {}
    examples: dict[tuple[str, str], Json] = {}
    for title, block in _BLOCK.findall(text):
        if title.startswith("Example: "):
            place, media_type, *name = title.removeprefix("Example: ").split()
            value, media = _value(media_type, block), examples.setdefault((place, media_type), {})
            if name:
                media["examples"] = {**media.get("examples", {}), name[0]: {"value": value}}
            else:
                media["example"] = value
        else:
            samples["" if title == "Try it" else title] = block.rstrip()
    own = _INCLUDE.sub("", (FOLDER / f"{operation}.md").read_text(encoding="utf-8"))
    return Prose(summary, _description(text), _description(_FILES.from_string(own).render(VALUES)), samples, examples)


def _description(text: str) -> str:
    """Return the text between the first heading and the second one."""
    return text.partition("\n## ")[0].partition("\n")[2].strip()


def rendered(name: str) -> str:
    """Return the text of a file, with its limits and the files that it includes."""
    return _FILES.get_template(name).render(VALUES)


def _value(media_type: str, block: str) -> Any:
    if media_type == JSON:
        return msgspec.json.decode(block)
    return block.replace("\n", "\r\n") if media_type == CSV else block


def blocks(text: str) -> Markup:
    """Return the HTML of the subset of Markdown that the files have: paragraphs, lists and code."""
    return Markup().join(map(_html_of, text.strip().split("\n\n")))


def inline(text: str) -> Markup:
    """Return the HTML of a text in one paragraph, with its code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  # the text is escaped


def _html_of(text: str) -> Markup:
    if not text.startswith("- "):
        return Markup("<p>{}</p>").format(inline(text))
    items = (Markup("<li>{}</li>").format(inline(item.strip())) for item in _ITEM.split(text)[1:])
    return Markup("<ul>{}</ul>").format(Markup().join(items))
