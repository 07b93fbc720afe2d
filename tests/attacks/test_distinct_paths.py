"""Beacons with distinct paths do not make reports fail, nor hide the pages of the site."""

from collections.abc import Callable

import httpx
import pytest

from tests.attacks.distinct_paths import BROWSER, attack
from tests.processes.running import PROJECT, Running

LIMIT, VIEWS = 100, 300
REPORTS = (
    "views?limit=250", "series?interval=day", "coverage", "breakdown?by=path", "breakdown?by=referrerHost",
    "breakdown?by=utmSource", "errors",
)  # fmt: skip


@pytest.mark.night
def test_a_stranger_adds_a_limited_number_of_paths_in_a_day_also_after_a_restart(start: Callable[..., Running]) -> None:
    service = start(
        2,
        READERSHIP_BEACONS_PER_MINUTE="100000000",
        READERSHIP_NEW_VALUES_PER_DAY=f"{LIMIT}",
        READERSHIP_LOAD_EVERY_S="1",
    )
    own = httpx.post(service.hits, json={"path": "/own"}, headers=BROWSER, verify=False, timeout=60)
    assert own.status_code == 202
    for attacks in (1, 2):
        assert attack(service.url, PROJECT, VIEWS) == {202: VIEWS}
        httpx.post(service.hits, json={"path": "/own"}, headers=BROWSER, verify=False, timeout=60)
        views = {row["path"]: row["human"] for row in service.get("limit=250")["views"]}
        assert len(views) == LIMIT + 1
        assert views["/own"] == attacks + 1
        assert views["/(other)"] == attacks * VIEWS - LIMIT + 1
        assert max(map(len, views)) == 512
        service.stop()
        service.start()
    for report in REPORTS:
        url = f"{service.url}/v1/analytics/{PROJECT}/{report}"
        response = httpx.get(url, headers=service.auth, verify=False, timeout=60)
        assert response.status_code == 200, response.text
        if report == "coverage":
            assert "reached the limit of new paths" in response.json()["warnings"][0]
        if "Host" in report or "utm" in report:
            assert {"(other)": LIMIT}.items() <= {row["value"]: LIMIT for row in response.json()["rows"]}.items()
