"""Each promise of the README has main tests, and `make test` runs them."""

import ast
import re

from tests.promises import DOCS, README
from tests.warehouse.site import ROOT

NOT_IN_MAKE_TEST = re.compile(r"pytest\.mark\.(long|night|installed|skip|skipif)\b")


def test_each_promise_of_the_readme_is_listed() -> None:
    introduction = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", introduction)
    assert re.findall(r"^- (.*)$", text, re.MULTILINE) == list(README)


def test_make_test_runs_the_main_tests_of_each_promise() -> None:
    for promise, tests in (README | DOCS).items():
        for test in tests:
            file, _, name = test.partition("::")
            module = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
            [found] = [each for each in module.body if isinstance(each, ast.FunctionDef) and each.name == name]
            of_module = [each for each in module.body if ast.unparse(each).startswith("pytestmark")]
            assert tests, promise
            for mark in (*found.decorator_list, *of_module):  # cases of a parametrized test may be long
                is_case = ast.unparse(mark).startswith("pytest.mark.parametrize(")
                assert is_case or not NOT_IN_MAKE_TEST.search(ast.unparse(mark)), f"{promise} {test}"
