"""The control database, open until the command ends."""

import click
import sqlalchemy as sa

from api import data_folder
from api.settings import Settings
from warehouse.control import database


def created(settings: Settings) -> sa.Engine:
    """Return an engine of the control database; create the data folder and the database if they are missing."""
    data_folder.prepare(settings)
    return _engine(settings)


def opened(settings: Settings) -> sa.Engine:
    """Return an engine of an existing control database.

    Raises:
        NoData: there is no control database.
        DataIncomplete: see `data_folder.require_whole_control`.
    """
    data_folder.require_control_database(settings)
    data_folder.require_whole_control(settings)
    return _engine(settings)


def _engine(settings: Settings) -> sa.Engine:
    engine = database.connect(settings.database_url)
    click.get_current_context().call_on_close(engine.dispose)
    return engine
