"""The control database of a command."""

import click
import sqlalchemy as sa

from api import data_folder
from api.settings import Settings
from warehouse import control


def opened(settings: Settings) -> sa.Engine:
    """An engine over it, in a prepared data folder, until the command ends."""
    data_folder.prepare(settings)
    engine = control.connect(settings.database_url)
    click.get_current_context().call_on_close(engine.dispose)
    return engine
