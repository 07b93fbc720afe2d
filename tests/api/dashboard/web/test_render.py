"""Templates of HTML lose the indentation of their lines, and other templates do not."""

import jinja2

from api.dashboard.web.render import environment


def test_indentation_is_left_out_of_html_templates_and_of_nothing_else() -> None:
    source = "<ul>\n  <li>{{ value }}  a\n\t <li>b\n</ul>"
    templates = environment().overlay(loader=jinja2.DictLoader({"list.html": source, "list.txt": source}))
    value = "first\n    second"
    assert templates.get_template("list.html").render(value=value) == f"<ul>\n<li>{value}  a\n<li>b\n</ul>"
    assert templates.get_template("list.txt").render(value=value) == f"<ul>\n  <li>{value}  a\n\t <li>b\n</ul>"
