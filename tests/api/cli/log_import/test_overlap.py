"""A followed log whose people the site's pages send, too, has a warning at its first views and then once a day."""

from contextlib import closing
from pathlib import Path

from api import settings
from api.cli.log_import.reading import CHECK_S, FollowedCheck
from tests.processes.running import PROJECT
from tests.warehouse.site import Site, view


def test_followed_log_is_checked_at_new_views_by_people_and_at_most_once_a_day(data: Path) -> None:
    chosen = settings.read({}, data)
    with closing(Site(data)) as site:
        site.post(*(view(source=source, project_id=PROJECT) for source in ("beacon", "log")))
        site.load()
    check = FollowedCheck(chosen, PROJECT)
    calls = [(0, 0), (1, 1), (2, CHECK_S), (2, CHECK_S + 1), (2, 3 * CHECK_S), (3, 3 * CHECK_S)]
    warnings = [check.warnings(people, now_s) for people, now_s in calls]
    assert [len(texts) for texts in warnings] == [0, 1, 0, 1, 0, 1]
    assert f"readership project policy {PROJECT}" in warnings[1][0]
