"""The control database of a command."""

from pathlib import Path

import click
import pytest

from api import settings
from api.cli.options import control_database
from warehouse.control import projects
from warehouse.errors import NoData


def test_created_database_is_empty_and_opens_again(tmp_path: Path) -> None:
    chosen = settings.read({}, tmp_path / "data")
    with click.Context(click.Command("first")):
        engine = control_database.created(chosen)
        assert projects.list_all(engine) == []
        projects.create(engine, "site", (), 1_700_000_000)
        assert len(engine._idle) == 1
    assert not engine._idle, "the connections are closed at the end of the command"
    with click.Context(click.Command("second")):
        assert [each.id for each in projects.list_all(control_database.opened(chosen))] == ["site"]


def test_missing_database_is_not_created(tmp_path: Path) -> None:
    with click.Context(click.Command("any")), pytest.raises(NoData):
        control_database.opened(settings.read({}, tmp_path / "data"))
    assert not (tmp_path / "data").exists()
