"""HTML of the prose of the reference."""

from api.reference import markdown


def test_text_is_escaped_and_code_is_marked() -> None:
    assert markdown.inline("if `a < b` & c") == "if <code>a &lt; b</code> &amp; c"


def test_paragraphs_and_lists_are_blocks() -> None:
    text = "One\nline.\n\n- first `x`\n- second,\n  on two lines\n\nEnd."
    blocks = (
        "<p>One\nline.</p>",
        "<ul><li>first <code>x</code></li><li>second,\n  on two lines</li></ul>",
        "<p>End.</p>",
    )
    assert markdown.blocks(text) == "".join(blocks)
