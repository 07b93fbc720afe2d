"""HTML of texts, code and tables."""

import re
from collections.abc import Iterable
from html import escape

_CODE = re.compile(r"`([^`]+)`")


def table(*heads: str, rows: Iterable[list[str]]) -> str:
    """Return a table. Cells are HTML."""
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    kind = ' class="fields"' if heads[1] in {"Type", "In"} else ""
    return f'<div class="table"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def pre(text: str) -> str:
    """Return a block of code."""
    return f"<pre><code>{escape(text)}</code></pre>"


def prose(text: str) -> str:
    """Return the HTML of a description in a subset of Markdown: paragraphs, lists and code."""
    return "".join(map(_block, text.strip().split("\n\n")))


def _block(text: str) -> str:
    if not text.startswith("- "):
        return f"<p>{inline(text)}</p>"
    items = "".join(f"<li>{inline(item)}</li>" for item in text.removeprefix("- ").split("\n- "))
    return f"<ul>{items}</ul>"


def inline(text: str) -> str:
    """Return the HTML of one line of a description, with its code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))
