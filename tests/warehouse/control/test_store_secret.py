"""The secret of a store is created once, and survives restarts."""

from pathlib import Path
from threading import Barrier, Thread

from warehouse.control import database, store_secret


def test_processes_that_start_at_once_read_one_secret(tmp_path: Path) -> None:
    url, secrets, start = f"sqlite:///{tmp_path / 'control.sqlite'}", list[bytes](), Barrier(4)
    engines = [database.connect(url) for _ in range(4)]

    def read(number: int) -> None:
        start.wait()
        secrets.append(store_secret.read(engines[number]))

    threads = [Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(secrets) == 4
    assert {len(each) for each in secrets} == {store_secret.SECRET_BYTES}
    assert {*secrets, store_secret.read(engines[0])} == {secrets[0]}
    for engine in engines:
        engine.close()


def test_stores_have_different_secrets(tmp_path: Path) -> None:
    engines = [database.connect(f"sqlite:///{tmp_path / name}") for name in ("one.sqlite", "two.sqlite")]
    assert store_secret.read(engines[0]) != store_secret.read(engines[1])
    for engine in engines:
        engine.close()
