"""Put random faults into the product, one at a time, and show which ones the tests catch.

`python -m tests.night.mutants [--number 100] [--seed N] [--near] [PACKAGE ...]` changes one operator, condition,
number, statement or SQL word of a copy of the repository. It runs the tests of the changed module, then all of its
room, then the tests of the promises and of its package, until one fails; with --near only the first two. Each package
has the same number of mutants. The survivors are printed with the lines that SURVIVORS takes: add a survivor that
changes nothing that a test could see, with the reason, and write a test for any other. Mutants in SURVIVORS are not
chosen. The results are added to RESULTS. The exit status is 1 if fewer than CAUGHT_MIN of the mutants are caught, or if
SURVIVORS has a mutant that is no longer one of the code.
"""

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from tests.test_rooms import PACKAGES, TESTED_BY

ROOT = Path(__file__).parents[2]
CAUGHT_MIN = 0.93
"""Least share of mutants that are caught."""
SURVIVORS = Path(__file__).with_name("survivors.txt")
"""Mutants that change nothing that a test can or should see. Each is a paragraph of four lines: the module, the changed
lines of the code before and after the change, each joined to one line, and the reason."""
RUN_S = 900
"""Time limit of one run of the tests, in seconds."""
OPTIONS = ("-x", "-q", "-rfE", "-p", "no:randomly", "-W", "ignore::pytest.PytestAssertRewriteWarning")
LOG = "pytest.log"
PASSED = (0, 5)
"""Exit statuses of pytest without a failed test: of passed tests, and of a folder with no test of these markers."""
RESULTS = Path("build/mutants.jsonl")
LIBRARIES = (
    "pytest", "duckdb", "deltalake", "pyarrow.parquet", "pyarrow.compute", "starlette.applications",
    "uvicorn", "jinja2", "user_agents", "rich.console",
)  # fmt: skip
"""Libraries that are imported once, for all runs of the tests."""
CHECKED_BY_MYPY = {"frozen", "slots", "kw_only"}
"""Arguments of a class whose violation mypy reports."""
NOT_COPIED = (".git", ".venv", "build", "results", "data-demo", "__pycache__", ".*_cache")
OPERATORS: dict[type[ast.AST], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
"""Operator of a comparison that replaces another."""
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip
SQL = re.compile(r"\b(?:SELECT|WHERE|FROM|UPDATE|DELETE)\b")
SQL_WORDS = {
    " AND ": " OR ", " < ": " <= ", " >= ": " > ", " = ": " != ", " - ": " + ", " IS NULL": " IS NOT NULL",
    "sum(": "max(", "min(": "max(", "UNION ALL": "UNION", "LEFT JOIN": "JOIN", " DESC": " ASC",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of a module: the text from `start` to `end`, in bytes of the file, becomes `text`.

    `before` and `after` are the changed lines of code, each joined to one line.
    """

    module: Path
    line: int
    start: int
    end: int
    text: str
    original: str
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Module, and the text before and after, by which SURVIVORS names the mutant."""
        return self.module.as_posix(), self.before, self.after

    def __str__(self) -> str:
        before, after = (" ".join(each.split())[:100] for each in (self.original, self.text))
        return f"{self.module}:{self.line}: {before}  ->  {after}"


def mutants(module: Path, source: str) -> Iterator[Mutant]:
    """Yield each possible mutant of a module. Annotations, docstrings, messages and log lines are not changed."""
    lines, content = [0], source.encode()
    for line in content.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def mutant(node: ast.expr | ast.stmt, new: str) -> Mutant:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first, last = lines[node.lineno - 1], lines[node.end_lineno]
        start, end = first + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset
        head, original, tail = (content[a:b].decode() for a, b in ((first, start), (start, end), (end, last)))
        before, after = (" ".join(f"{head}{text}{tail}".split()) for text in (original, new))
        return Mutant(module, node.lineno, start, end, new, original, before, after)

    for node in _behaviour(ast.parse(source)):
        for text in _replacements(node):
            assert isinstance(node, ast.expr | ast.stmt)
            yield mutant(node, text)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below `node` that can change what the product does."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "exc", "msg"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            match child:
                case ast.Expr(ast.Constant()) | ast.JoinedStr() | ast.Assert() | ast.Import():
                    continue
                case ast.keyword(arg) if isinstance(node, ast.ClassDef) and arg in CHECKED_BY_MYPY:
                    continue
                case ast.AST():
                    yield child
                    yield from _behaviour(child)


def _replacements(node: ast.AST) -> Iterator[str]:
    """Yield the source texts that replace a node."""
    match node:
        case ast.Constant(bool(value)):
            yield str(not value)
        case ast.Constant(int(value)):
            yield str(value + 1)
        case ast.Constant(str(value)) if SQL.search(value):
            yield from (repr(value.replace(word, other, 1)) for word, other in SQL_WORDS.items() if word in value)
        case ast.Expr(ast.Call(function)) if "log" not in ast.unparse(function).lower():
            yield "None"
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield "return None"
        case ast.expr():
            yield from _operators(node)


def _operators(node: ast.expr) -> Iterator[str]:
    """Yield the source texts that replace an expression by one with another operator or order."""
    match node:
        case ast.Compare(left, [operator], [right]) if type(operator) in OPERATORS:
            yield f"({ast.unparse(left)} {OPERATORS[type(operator)]} {ast.unparse(right)})"
        case ast.BoolOp(operator, values):
            word = " and " if isinstance(operator, ast.Or) else " or "
            yield f"({word.join(f'({ast.unparse(value)})' for value in values)})"
        case ast.BinOp(left, operator, right) if type(operator) in ARITHMETIC:
            yield f"({ast.unparse(ast.BinOp(left, ARITHMETIC[type(operator)](), right))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield f"bool({ast.unparse(operand)})"
        case ast.IfExp(test, body, orelse):
            yield f"({ast.unparse(ast.IfExp(test, orelse, body))})"


def apply(mutant: Mutant, folder: Path) -> None:
    """Change the module in a copy of the repository."""
    file = folder / mutant.module
    content = file.read_bytes()
    file.write_bytes(content[: mutant.start] + mutant.text.encode() + content[mutant.end :])


def near(module: Path, folder: Path) -> Iterator[list[str]]:
    """Yield the tests of a module and then those of its room, without its inner rooms if the room is a package."""
    own = TESTED_BY.get(module.as_posix(), (module.parent / f"test_{module.name}").as_posix())
    if (folder / "tests" / own).exists():
        yield [f"tests/{own}"]
    room = next(each for each in module.parents if (folder / "tests" / each).is_dir())
    files = [file.relative_to(folder).as_posix() for file in sorted((folder / "tests" / room).glob("test_*.py"))]
    yield files if room.as_posix() in PACKAGES else [f"tests/{room}"]


def catch(mutant: Mutant, folder: Path, *, only_near: bool) -> str | None:
    """Return the test that catches the mutant, None if it survives: near ones, then the promises' and its package's."""
    apply(mutant, folder)
    far = ["tests/promises", "tests/service", f"tests/{mutant.module.parts[0]}"]
    try:
        for tests in [*near(mutant.module, folder), *([] if only_near else [far])]:
            is_module = len(tests) == 1 and tests[0].endswith(".py")
            options = ["-m", "" if is_module else "not long and not night and not installed"]
            options += ["-n", "2", "--dist", "loadfile"] if tests is far else []
            status = run([*options, *tests], folder)
            if status is None:
                return f"{' '.join(tests)} (no end)"
            if status not in PASSED:
                output = (folder / LOG).read_text(errors="replace")
                failed = re.search(r"^(?:FAILED|ERROR|\w+ while loading) (\S.*?)(?: - |$)", output, re.MULTILINE)
                return failed[1] if failed else f"{' '.join(tests)} (exit status {status})"
        return None
    finally:
        shutil.copy(ROOT / mutant.module, folder / mutant.module)


def run(arguments: list[str], folder: Path) -> int | None:
    """Return the exit status of pytest in the folder; None if it did not end in RUN_S.

    The process is a fork of this one, which has imported LIBRARIES: that saves a second of each run.
    """
    process = multiprocessing.get_context("fork").Process(target=_pytest, args=(arguments, folder))
    process.start()
    process.join(RUN_S)
    status = process.exitcode
    if process.pid is not None and (status is None or status < 0):
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return status


def _pytest(arguments: list[str], folder: Path) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path[:] = [str(folder), *(each for each in sys.path if each not in {"", str(ROOT)})]
    for name in [name for name in sys.modules if name.partition(".")[0] in {"tests", *PACKAGES}]:
        del sys.modules[name]
    output = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    import pytest  # noqa: PLC0415  # imported before the fork

    status = pytest.main([*OPTIONS, *arguments])
    sys.stdout.flush()
    os._exit(int(status))


def listed(file: Path = SURVIVORS) -> set[tuple[str, str, str]]:
    """Return module, text before and text after of each mutant in SURVIVORS."""
    paragraphs = [paragraph.splitlines() for paragraph in file.read_text().strip().split("\n\n")]
    assert all(len(lines) == 4 for lines in paragraphs), "a survivor has four lines"
    return {(module, before, after) for module, before, after, _ in paragraphs}


def possible(package: str) -> list[Mutant]:
    """Return all mutants of a package."""
    files = [file.relative_to(ROOT) for file in sorted((ROOT / package).rglob("*.py"))]
    return [mutant for file in files for mutant in mutants(file, (ROOT / file).read_text())]


def chosen(every: list[Mutant], number: int, seed: int, survivors: Set[tuple[str, str, str]]) -> list[Mutant]:
    """Return random mutants, spread over the modules of a package by their numbers of possible mutants.

    Known survivors are left out.
    """
    others = [mutant for mutant in every if mutant.key not in survivors]
    return random.Random(seed).sample(others, min(number, len(others)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(PACKAGES))
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--near", action="store_true", help="run only the tests of the module and of its room")
    options = parser.parse_args()
    packages = options.packages or list(PACKAGES)
    survivors, number = listed(), -(-options.number // len(packages))
    every = {package: possible(package) for package in PACKAGES}
    stale = survivors - {mutant.key for each in every.values() for mutant in each}
    each_package = [chosen(every[package], number, options.seed, survivors) for package in packages]
    order = [mutant for row in zip_longest(*each_package) for mutant in row if mutant][: options.number]
    for library in LIBRARIES:
        importlib.import_module(library)
    RESULTS.parent.mkdir(exist_ok=True)
    results: list[tuple[Mutant, str | None]] = []
    with tempfile.TemporaryDirectory(prefix="readership-mutants-") as name:
        folder = Path(name)
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), dirs_exist_ok=True)
        if status := run(["tests/night/test_slower.py"], folder):
            raise RuntimeError(f"a test fails without a mutant: exit status {status}, see {folder / LOG}")
        for mutant in order:
            test = catch(mutant, folder, only_near=options.near)
            results.append((mutant, test))
            print(f"{'caught' if test else 'SURVIVED'}  {mutant}", f"({test})" if test else "", flush=True)
            with RESULTS.open("a") as file:
                file.write(json.dumps({"seed": options.seed, "mutant": str(mutant), "caught_by": test}) + "\n")
    return report(results, stale)


def report(results: list[tuple[Mutant, str | None]], stale: Set[tuple[str, str, str]]) -> int:
    """Print survivors, stale entries of SURVIVORS and the share of caught mutants; return the exit status."""
    total = Counter(mutant.module.parts[0] for mutant, _ in results)
    caught = Counter(mutant.module.parts[0] for mutant, test in results if test)
    print(*("\n".join(("", *mutant.key)) for mutant, test in results if test is None), "", sep="\n")
    for module, before, after in sorted(stale):
        print(f"not in the code, remove from {SURVIVORS.name}: {module}: {before}  ->  {after}")
    shares = ", ".join(f"{package} {caught[package]} of {total[package]}" for package in total)
    print(f"caught {caught.total()} of {total.total()}: {shares}; {len(stale)} stale survivors")
    return 0 if caught.total() >= CAUGHT_MIN * total.total() and not stale else 1


if __name__ == "__main__":
    sys.exit(main())
