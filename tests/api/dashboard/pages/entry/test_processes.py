"""The way of a first owner into a service with several server processes."""

import re
from collections.abc import Callable

import httpx
import pytest

from tests.processes.running import Running

FIRST_OWNER = {"name": "Ada", "new_password": "correct horse", "repeated": "correct horse"}
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


def post(service: Running, path: str, **values: str) -> httpx.Response:
    """Post a form over a new connection, which any of the server processes accepts."""
    return httpx.post(f"{service.url}{path}", data=values, headers=SAME_SITE, timeout=60)


@pytest.mark.long
def test_sessions_and_limits_are_shared_and_the_log_has_no_token(start: Callable[..., Running]) -> None:
    service = start(processes=2)
    link = re.findall(r"/welcome/[\w-]{43}", service.log.read_text())[0]
    assert httpx.get(f"{service.url}{link}").status_code == 200
    entered = post(service, link, **FIRST_OWNER)
    assert entered.status_code == 303
    cookies = dict(entered.cookies)
    assert cookies.keys() == {"readership_session"}
    for _ in range(8):
        assert httpx.get(f"{service.url}/account", cookies=cookies).status_code == 200
    wrong = [post(service, "/sign-in", name="Ada", password="wrong horse").status_code for _ in range(8)]
    assert wrong == [422] * 5 + [429] * 3
    assert post(service, "/sign-in", name="Ada", password="correct horse").status_code == 429
    assert service.stop() == 0
    text = service.log.read_text()
    assert text.count("/welcome/***") == 2
    assert text.count(link) == 1
    assert cookies["readership_session"] not in text
    assert "correct horse" not in text
