"""The prose of the reference: one file for each operation, with examples of the bodies and columns that it has."""

import csv

from api.app import OPERATIONS
from api.cli.project import project
from api.http.operation import CSV
from api.reference import prose
from api.reference.openapi import description
from api.reports.records import REPORTS
from tests.api.reference import docs
from warehouse.control.policy import TEXTS

SHARED = {"introduction.md"}


def test_each_operation_has_a_file_and_each_file_an_operation() -> None:
    files = {file.name for file in prose.FOLDER.glob("*.md") if not file.name.startswith("_")}
    assert files - SHARED == {f"{each.id}.md" for each in OPERATIONS}


def test_each_operation_has_a_summary_a_description_and_a_sample() -> None:
    for each in OPERATIONS:
        texts = prose.of(each.id)
        assert texts.summary
        assert texts.description
        assert texts.samples
        assert "{{" not in texts.description


def test_examples_are_those_of_bodies_that_the_operation_has() -> None:
    for each in OPERATIONS:
        bodies = {("body", media_type) for media_type in each.body}
        bodies |= {(str(success.status), media_type) for success in each.responses for media_type in success.content}
        assert prose.of(each.id).examples.keys() <= bodies


def test_example_of_a_table_has_the_columns_of_the_report() -> None:
    for report in REPORTS:
        header, row = csv.reader(prose.of(report.id).examples["200", CSV]["example"].splitlines())
        has_dimension = report.name in {"breakdown", "cost"}
        columns = ["agent", *report.columns.names[1:]] if has_dimension else report.columns.names
        assert header == columns
        assert len(row) == len(columns)


def test_single_sample_has_no_title() -> None:
    assert [*prose.of("alive").samples] == [""]
    assert "" not in prose.of("sendHits").samples


def test_page_about_reports_has_the_descriptions_of_the_reference() -> None:
    text = docs.PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in text for name in ("reports", "policies", *(report.id for report in REPORTS)))
    assert text == docs.filled(text), "run: python -m tests.api.reference.docs"


def test_text_is_escaped_and_code_is_marked() -> None:
    assert prose.inline("if `a < b` & c") == "if <code>a &lt; b</code> &amp; c"


def test_paragraphs_and_lists_are_blocks() -> None:
    text = "One\nline.\n\n- first `x`\n- second,\n  on two lines\n\nEnd."
    blocks = (
        "<p>One\nline.</p>",
        "<ul><li>first <code>x</code></li><li>second,\n  on two lines</li></ul>",
        "<p>End.</p>",
    )
    assert prose.blocks(text) == "".join(blocks)


def test_policies_have_the_same_text_in_help_reference_and_docs() -> None:
    schema = description(OPERATIONS)["components"]["schemas"]["Coverage"]["properties"]["policy"]
    assert "  " not in (project.commands["policy"].help or "  ")
    for name, text in TEXTS.items():
        assert f"{name}: {text}" in (project.commands["policy"].help or "")
        assert f"`{name}`: {text}" in schema["description"]
        assert f"| `{name}` | {text} |" in docs.PAGE.read_text(encoding="utf-8")
