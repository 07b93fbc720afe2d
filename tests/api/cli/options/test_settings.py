"""`settings` prints the values that every other command has."""

from pathlib import Path

import pytest

from tests.api.cli.console import call, result


def test_settings_are_printed_with_values_and_without_a_password(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READERSHIP_RETENTION_DAYS", "400")
    monkeypatch.setenv("READERSHIP_REVERSE_DNS", "on")
    monkeypatch.setenv("READERSHIP_DATABASE_URL", "postgresql://user:pass-word@database.test/readership")
    rows = result(call(data, "settings"))
    values = {row["setting"]: row["value"] for row in rows}
    assert values["READERSHIP_DATA"] == str(data)
    assert values["READERSHIP_RETENTION_DAYS"] == "400"
    assert values["READERSHIP_REVERSE_DNS"] == "on"
    assert values["READERSHIP_DATABASE_URL"] == "database readership on database.test"
    assert values["READERSHIP_LOAD_ROWS"] == "100000"
    meanings = {row["setting"]: row["meaning"] for row in rows}
    assert meanings["READERSHIP_CACHE_MIB"] == "maximum size of the caches of each server process, in MiB"
