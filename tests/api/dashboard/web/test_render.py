"""Templates: values are escaped in HTML and not in recipes, and a misspelled name is an error."""

import jinja2
import pytest

from api.dashboard.web.render import environment

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
