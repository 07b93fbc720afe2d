from contextlib import closing
from pathlib import Path

import pytest

from api import data_folder, settings
from tests.stores.object_store import unsafe_server
from tests.warehouse.site import Site
from warehouse.errors import UnsafeStore
from warehouse.lake.remote import object_path, probe


def test_store_that_refuses_the_second_writer_is_accepted(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")  # has no effect
    lake = object_path.open_lake(bucket, tmp_path, 0)
    probe.require_conditional_put(lake)
    assert lake.list_files() == {}


def test_store_that_lets_every_writer_win_is_refused_at_the_start_and_by_the_doctor(
    object_store: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unsafe_server(object_store) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        config = settings.read({"READERSHIP_LAKE": f"{bucket}/unsafe"}, tmp_path / "data")
        refused = f"{bucket}/unsafe lets two writers create an object"
        with pytest.raises(UnsafeStore, match=refused):
            data_folder.prepare_lake(config)
        assert (config.data.exists(), list(config.lake.list_files())) == (False, [])
        with closing(Site(config.data, root=config.lake)) as site:
            assert [fault for fault in site.faults() if refused in fault] == site.faults() != []
