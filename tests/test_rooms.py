"""The rooms of each package and of the tests: lists of modules, few and short modules, imports in one direction."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("ingest", "warehouse", "api", "agent")
MODULES_MAX = 12
LINES_MAX = 300
"""Maximum number of lines of a module."""
FUNCTION_LINES_MAX = 40
"""Maximum number of lines of a function's body, without its docstring."""
STATEMENTS_WITHOUT_A_TEST_MAX = 40
TESTED_BY = {
    "api/cli/log_import/reading.py": "api/cli/log_import/test_command.py",
    "api/cli/recover.py": "promises/test_recovery.py",
    "api/cli/serve.py": "api/test_logs.py",
    "api/environment.py": "api/test_settings.py",
    "api/dashboard/pages/jobs/prompt_form.py": "api/dashboard/pages/jobs/test_job_list.py",
    "api/dashboard/web/visit.py": "api/dashboard/pages/reading/test_projects.py",
    "api/reports/documents.py": "api/reference/test_openapi.py",
    "api/reports/metrics.py": "api/reports/test_visitors.py",
    "api/reports/report.py": "api/reports/test_responses.py",
    "api/reports/records.py": "api/reports/test_views.py",
    "ingest/formats/json_products.py": "ingest/formats/test_json_lines.py",
    "ingest/imports/prepared/preparation.py": "ingest/imports/prepared/test_downloads.py",
    "warehouse/batch/ray_workers.py": "nodes/test_ray.py",
    "warehouse/columns/visits.py": "warehouse/report/laws/test_visitors.py",
    "warehouse/database/pool.py": "warehouse/test_database_errors.py",
    "warehouse/rollups/cubes.py": "warehouse/rollups/test_writer.py",
    "warehouse/rollups/days.py": "warehouse/report/laws/test_visitors.py",
    "warehouse/errors.py": "warehouse/lake/remote/test_filesystem.py",
    "warehouse/hotlog/postgresql.py": "ingest/hotlog/test_ledger_store.py",
    "warehouse/hotlog/schema_migrations.py": "warehouse/test_migrations.py",
    "warehouse/move/tables.py": "warehouse/move/test_databases.py",
    "warehouse/rollups/ranked.py": "warehouse/report/test_ranked_pages.py",
}
"""Large modules without a test of the same name, each with the test module of its caller, below tests/."""
CLOCKS = {"datetime.now", "datetime.utcnow", "date.today", "time.time", "time.time_ns", "time.monotonic"}
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEST_FOLDERS = sorted({file.parent.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("*.py")})
FOLDERS = sorted(
    init.parent.relative_to(ROOT).as_posix()
    for package in (*PACKAGES, "benchmarks")
    for init in (ROOT / package).rglob("__init__.py")
)


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def modules(folder: str) -> set[str]:
    """Return the names of the modules and rooms in a folder."""
    inside = (ROOT / folder).iterdir()
    return {path.stem for path in inside if path.suffix == ".py" or (path / "__init__.py").exists()} - {
        "__init__",
        "__main__",
    }


def listed(folder: str) -> list[str]:
    """Return the names that begin the items of the list in a folder's docstring."""
    text = ast.get_docstring(parsed(ROOT / folder / "__init__.py")) or ""
    return [
        name
        for item in re.findall(r"^- ((?:`\w+`(?:, )?)+)", text, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", item)
    ]


def imports(file: Path) -> set[str]:
    """Return the dotted names that a module imports, including imports inside of its functions."""
    names = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
    return names


def test_docstring_lists_each_module_once() -> None:
    assert {folder: sorted(listed(folder)) for folder in FOLDERS} == {
        folder: sorted(modules(folder)) for folder in FOLDERS
    }


def test_folder_has_at_most_twelve_modules() -> None:
    exempt = {"__init__", "__main__", "conftest"}
    counts = {each: len({path.stem for path in (ROOT / each).glob("*.py")} - exempt) for each in FOLDERS + TEST_FOLDERS}
    assert {folder: count for folder, count in counts.items() if count > MODULES_MAX} == {}


@pytest.mark.long
def test_modules_and_functions_are_short() -> None:
    files = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    assert not [path for path in files if path.read_text(encoding="utf-8").count("\n") > LINES_MAX]
    assert not [name for path in files for name in long_functions(path)]


def long_functions(file: Path) -> list[str]:
    """Return the functions of a module whose body has more than FUNCTION_LINES_MAX lines."""
    nodes = ast.walk(parsed(file))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    code = {each: each.body[1:] if ast.get_docstring(each) and each.body[1:] else each.body for each in functions}
    lines = {each: (each.end_lineno or 0) - body[0].lineno + 1 for each, body in code.items()}
    return [f"{file.name}: {each.name} has {count}" for each, count in lines.items() if count > FUNCTION_LINES_MAX]


def test_no_module_of_the_tests_reads_the_clock_while_it_is_imported() -> None:
    """A test runs up to 20 minutes after the import of its module, perhaps on another day."""
    found = {str(file.relative_to(ROOT)): times_read(parsed(file)) for file in (ROOT / "tests").rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}


def times_read(node: ast.AST) -> list[int]:
    """Return the lines of calls of a clock outside the bodies of functions and of the main program."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
        return []
    own = [node.lineno] if isinstance(node, ast.Call) and ast.unparse(node.func) in CLOCKS else []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        inside: list[ast.AST] = [node.args, *getattr(node, "decorator_list", [])]
    else:
        inside = [*ast.iter_child_nodes(node)]
    return own + [line for each in inside for line in times_read(each)]


def statements(file: Path) -> int:
    """Return the number of statements in the functions and classes of a module."""
    bodies = [node for node in parsed(file).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return sum(isinstance(node, ast.stmt) and node not in bodies for body in bodies for node in ast.walk(body))


@pytest.mark.parametrize("package", PACKAGES)
def test_module_with_logic_has_a_test_of_the_same_name(package: str) -> None:
    """Check that each other module is in TESTED_BY, and that TESTED_BY has no other modules."""
    without = {
        module.as_posix()
        for module in (file.relative_to(ROOT) for file in (ROOT / package).rglob("*.py"))
        if module.stem != "__init__" and not (ROOT / "tests" / module.parent / f"test_{module.name}").exists()
    }
    large = {module for module in without if statements(ROOT / module) > STATEMENTS_WITHOUT_A_TEST_MAX}
    listed_here = {module for module in TESTED_BY if module.startswith(f"{package}/")}
    assert large <= listed_here <= without
    assert all((ROOT / "tests" / TESTED_BY[module]).exists() for module in listed_here)


@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_import_in_one_direction(package: str) -> None:
    """Check that no room imports a room that imports it, directly or through others."""
    places = {f"{package}.{name}" for name in modules(package)}
    graph: dict[str, set[str]] = {place: set() for place in places}
    for file in (ROOT / package).rglob("*.py"):
        place = ".".join(file.relative_to(ROOT).with_suffix("").parts[:2])
        if place in places:
            targets = {".".join(name.split(".")[:2]) for name in imports(file)}
            graph[place] |= targets & places - {place}
    TopologicalSorter(graph).prepare()


def test_modules_and_files_that_the_docs_name_exist() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    dotted = {
        name.replace(".", "/") + ".py" for name in re.findall(r"`((?:api|ingest|agent|warehouse)(?:\.\w+){2,})`", text)
    }
    files = set(re.findall(r"`((?:api|ingest|agent|warehouse|tests|benchmarks)/[\w/]+\.\w+)`", text))
    assert not [name for name in (dotted | files) - {"api/github/com.py"} if not (ROOT / name).exists()]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings: lower case, hyphens for spaces, no punctuation."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_of_the_docs_lead_to_a_file_and_a_heading() -> None:
    for page in PAGES:
        for path, anchor in re.findall(r"\]\((?!http)([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {path}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {path}#{anchor}"
