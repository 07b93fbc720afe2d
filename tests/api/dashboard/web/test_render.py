"""Templates: values are escaped in HTML and not in recipes, and a misspelled name is an error."""

import jinja2
import pytest

from api.dashboard.web.render import TEMPLATES, environment

LINE_MAX = 160
"""Maximum number of characters of a line of a template."""
ATTACK = "<script>&'\""


@pytest.fixture
def templates() -> jinja2.Environment:
    return environment().overlay(
        loader=jinja2.DictLoader({"list.html": "<ul>\n  <li>{{ value }}\n</ul>", "list.txt": "  {{ value }}"})
    )


def test_values_are_escaped_in_html_alone(templates: jinja2.Environment) -> None:
    html = templates.get_template("list.html").render(value=ATTACK)
    assert html == "<ul>\n  <li>&lt;script&gt;&amp;&#39;&#34;\n</ul>"
    assert templates.get_template("list.txt").render(value=ATTACK) == f"  {ATTACK}"


def test_misspelled_name_is_an_error(templates: jinja2.Environment) -> None:
    with pytest.raises(jinja2.UndefinedError):
        templates.get_template("list.html").render(values=1)


def test_lines_of_templates_are_short_enough_to_read() -> None:
    files = sorted(TEMPLATES.rglob("*.html"))
    assert len(files) > 30
    assert [
        f"{file.name}:{number}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LINE_MAX
    ] == []
