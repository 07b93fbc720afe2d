"""Small requests neither fill the memory, choose an address, refuse a server's hits nor exhaust an object store."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks import event_ids, heads, readiness
from tests.processes.running import Running
from tests.stores import object_store

LIMIT = 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("attack", "status"), [(heads.large_field, 431), (heads.many_fields, 431), (heads.large_trailer, 0)]
)
def test_large_head_takes_no_memory(
    start: Callable[..., Running], attack: Callable[[Running], tuple[int, float]], status: int
) -> None:
    answered, mib = attack(start())
    assert answered == status
    assert mib < heads.MEBIBYTES / 3


@pytest.mark.long
def test_field_after_a_body_does_not_choose_the_address_of_the_client(start: Callable[..., Running]) -> None:
    service = start(READERSHIP_BEACONS_PER_MINUTE=str(LIMIT))
    assert heads.beacons(service, 2 * LIMIT) == LIMIT


def test_beacons_with_guessed_event_ids_make_no_hit_of_a_server_a_duplicate(start: Callable[..., Running]) -> None:
    assert event_ids.guessed(start()) == {"/beacon": event_ids.COUNT, "/server": event_ids.COUNT}


@pytest.mark.long
def test_many_requests_for_readiness_share_a_look_up_of_the_object_store(
    tmp_path: Path, start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with object_store.logging_server(log) as url:
        environ = object_store.environ(url) | {"READERSHIP_LAKE": object_store.new_bucket(url)}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        service = start(**environ)
        count, statuses, seconds = readiness.lists(service, log, 200)
        service.stop()
    assert statuses == {200}
    assert count <= 9 * (seconds + 1)
