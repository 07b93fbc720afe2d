"""Warnings of imports: people whom the site's pages send, too, and address lists that are too old to find impostors."""

from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from api import settings
from api.cli.log_import import reading
from api.cli.log_import.reading import CHECK_S
from ingest.imports.chunk import Summary
from ingest.verification.address_lists import shipped
from tests.api.cli.console import FIREFOX, call
from tests.processes.running import PROJECT
from tests.warehouse.site import Site, view


def test_followed_log_is_checked_at_new_views_by_people_and_at_most_once_a_day(data: Path) -> None:
    chosen = settings.read({}, data)
    with closing(Site(data)) as site:
        site.post(*(view(source=source, project_id=PROJECT) for source in ("beacon", "log")))
        site.load()
    due = reading.followed(chosen, PROJECT)
    calls = [(0, 0), (1, 1), (2, CHECK_S), (2, CHECK_S + 1), (2, 3 * CHECK_S), (3, 3 * CHECK_S)]
    warnings = [
        [text for text in due(Summary(human=people, ai=1), now_s) if "address lists" not in text]
        for people, now_s in calls
    ]
    assert [len(texts) for texts in warnings] == [0, 1, 0, 1, 0, 1]
    assert f"readership project policy {PROJECT}" in warnings[1][0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("user_agent", "days", "is_warned"), [("GPTBot/1.3", 400, True), (FIREFOX, 400, False), ("GPTBot/1.3", 0, False)]
)
def test_import_of_ai_with_old_address_lists_has_a_warning_with_the_command(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user_agent: str, days: int, is_warned: bool
) -> None:
    newest = max(each.seen for each in shipped().values())

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls(newest.year, newest.month, newest.day, tzinfo=tz) + timedelta(days)

    monkeypatch.setattr(reading, "datetime", Clock)
    time = f"{datetime.now(UTC) - timedelta(hours=1):%d/%b/%Y:%H:%M:%S +0000}"
    log = tmp_path / "a.log"
    log.write_text(f'9.9.9.9 - - [{time}] "GET /a HTTP/1.1" 200 5 "-" "{user_agent}"\n')
    done = call(data, "import", PROJECT, str(log))
    assert done.status == 0
    assert ("older than" in done.err and f"--data {data} ranges refresh\n" in done.err) == is_warned
