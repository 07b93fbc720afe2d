"""The control database, open until the command ends."""

import click

from api import data_folder
from api.settings import Settings
from warehouse.control import database
from warehouse.database.pool import Pool


def created(settings: Settings) -> Pool:
    """Return the control database; create the data folder and the database if they are missing."""
    data_folder.prepare(settings)
    return _connected(settings)


def opened(settings: Settings) -> Pool:
    """Return an existing control database.

    Raises:
        NoData: there is no control database.
        DataIncomplete: see `data_folder.require_whole_control`.
    """
    data_folder.require_control_database(settings)
    data_folder.require_whole_control(settings)
    return _connected(settings)


def _connected(settings: Settings) -> Pool:
    control = database.connect(settings.database_url)
    click.get_current_context().call_on_close(control.close)
    return control
