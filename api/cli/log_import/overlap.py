"""Warnings about views by people that are counted from a log and from the site's pages."""

from contextlib import closing

from api.settings import Settings
from warehouse.control import database, source_policies
from warehouse.maintenance import double_counting

CHECK_S = 24 * 3600
"""Minimum time between two checks of a followed log, in seconds."""


def warnings(settings: Settings, project_id: str) -> list[str]:
    """Return the warnings of a project whose policy counts people from its log and from its pages."""
    if not double_counting.has_beacons(settings.lake, project_id):
        return []
    with closing(database.connect(settings.database_url)) as control:
        policies = {project_id: source_policies.periods(control, project_id)}
    by_project = double_counting.find(settings.hot_log, settings.lake, settings.run / "spill", policies)
    return [double_counting.advice(project_id, text) for text in by_project.get(project_id, ())]


class FollowedCheck:
    """Check of a followed log: at its first views by people, and then at most once a day."""

    def __init__(self, settings: Settings, project_id: str) -> None:
        self._settings = settings
        self._project_id = project_id
        self._people = 0
        self._due_s = 0.0

    def warnings(self, people: int, now_s: float) -> list[str]:
        """Return the warnings if a check is due. `people` is the number of views by people that were stored so far."""
        if people == self._people or now_s < self._due_s:
            return []
        self._people, self._due_s = people, now_s + CHECK_S
        return warnings(self._settings, self._project_id)
