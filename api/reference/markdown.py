"""HTML of the subset of Markdown that the prose has: paragraphs, lists, code and bold text."""

import re

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")
_ITEM = re.compile(r"^- ", re.MULTILINE)


def blocks(text: str) -> Markup:
    """Return the HTML of paragraphs and lists."""
    return Markup().join(map(_block, text.strip().split("\n\n")))


def inline(text: str) -> Markup:
    """Return the HTML of a text in one paragraph, with its code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  # the text is escaped


def _block(text: str) -> Markup:
    if not text.startswith("- "):
        return Markup("<p>{}</p>").format(inline(text))
    items = (Markup("<li>{}</li>").format(inline(item.strip())) for item in _ITEM.split(text)[1:])
    return Markup("<ul>{}</ul>").format(Markup().join(items))
