"""Lines that no test ran are listed by module, and counted by package."""

from tests.night.covered import missing, summary


def module(
    covered: int, statements: int, covered_branches: int, branches: int, missing: list[int]
) -> dict[str, object]:
    return {
        "missing_lines": missing,
        "summary": {
            "covered_lines": covered,
            "num_statements": statements,
            "covered_branches": covered_branches,
            "num_branches": branches,
        },
    }


def test_modules_are_listed_with_their_missing_lines_and_added_up_by_package() -> None:
    files = {
        "api/app.py": module(1, 2, 0, 4, [7]),
        "api/cli/main.py": module(2, 2, 4, 4, []),
        "ingest/hit.py": module(4, 4, 0, 0, []),
    }
    assert list(missing(files)) == ["api/app.py: 7"]
    assert [row.split() for row in summary(files)] == [
        "ingest 100.0% of 4 lines 0.0% of 0 branches".split(),
        "warehouse 0.0% of 0 lines 0.0% of 0 branches".split(),
        "api 75.0% of 4 lines 50.0% of 8 branches".split(),
        "agent 0.0% of 0 lines 0.0% of 0 branches".split(),
        "all 87.5% of 8 lines 50.0% of 8 branches".split(),
    ]
