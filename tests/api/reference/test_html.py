"""HTML of the reference page, made from descriptions."""

from api.reference import html


def test_text_is_escaped_and_code_is_marked() -> None:
    assert html.inline("if `a < b` & c") == "if <code>a &lt; b</code> &amp; c"


def test_paragraphs_and_lists_are_blocks() -> None:
    text = "One\nline.\n\n- first `x`\n- second\n\nEnd."
    blocks = ("<p>One\nline.</p>", "<ul><li>first <code>x</code></li><li>second</li></ul>", "<p>End.</p>")
    assert html.prose(text) == "".join(blocks)


def test_block_of_code_is_escaped() -> None:
    assert html.pre("curl -d '{\"a\": 1}' <URL>").startswith("<pre><code>curl -d &#x27;{&quot;a&quot;: 1}")


def test_cells_of_a_table_are_html() -> None:
    expected = '<div class="table"><table><thead><tr><th>Status</th><th>Meaning</th></tr></thead>'
    expected += "<tbody><tr><td>200</td><td><code>ok</code></td></tr></tbody></table></div>"
    assert html.table("Status", "Meaning", rows=[["200", "<code>ok</code>"]]) == expected


def test_tables_of_fields_and_parameters_have_a_class() -> None:
    for head in ("Type", "In"):
        assert '<table class="fields">' in html.table("Name", head, rows=[])
