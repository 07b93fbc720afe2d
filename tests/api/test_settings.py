"""Settings: a wrong variable is an error that names it, its limit or the nearest name."""

import os
import pickle
from pathlib import Path

import pytest

from api import settings
from api.cli.options.network import with_options
from api.errors import InvalidSetting
from ingest.verification.signature_agents import signature_agents
from warehouse.hotlog.connection import Server

ROOT = Path(__file__).parents[2]


def complaint(**environ: str) -> str:
    with pytest.raises(InvalidSetting) as error:
        settings.read(environ)
    return str(error.value)


def test_hit_that_waits_for_five_loads_and_five_minutes_is_late() -> None:
    late_s = [settings.read({"READERSHIP_LOAD_EVERY_S": seconds}).late_s for seconds in ("1", "60", "61")]
    assert late_s == [300, 300, 305]


def test_unknown_setting_is_an_error_that_names_the_nearest_one_or_all() -> None:
    for name, nearest in {
        "READERSHIP_LOAD_EVRY_S": "READERSHIP_LOAD_EVERY_S",
        "READERSHIP_RETENTION": "READERSHIP_RETENTION_DAYS",
        "READERSHIP_DATABASE": "READERSHIP_DATABASE_URL",
        "READERSHIP_TRUSTED_PROXY": "READERSHIP_TRUSTED_PROXIES",
    }.items():
        assert complaint(**{name: "1"}) == f"there is no setting {name}: did you mean {nearest}?"
    for name in ("ZZZZZZZZZZZZZZZ", "FOO", "ENVIRON", "RUN_SECRET"):
        message = complaint(**{f"READERSHIP_{name}": "1"})
        assert "READERSHIP_DATA, " in message
        assert "RUN_SECRET" not in message.partition(": ")[2]


def test_wrong_value_is_an_error_that_names_the_variable_and_the_limit() -> None:
    some = "some of chatgpt.com, agent.bot.goog, not example.com"
    for name, value, limit in (
        ("LOAD_EVERY_S", "60s", "whole number"),
        ("LOAD_EVERY_S", "", "whole number"),
        ("LOAD_EVERY_S", "0", "at least 1,"),
        ("LOAD_EVERY_S", "9" * 5000, "at most 1000000000"),
        ("RETENTION_DAYS", "36501", "at most 36500"),
        ("JOBS_AT_ONCE", "1000", "at most 256"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,localhost", "localhost"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "10.0.0.1/8"),
        ("DATA", "", "name a folder"),
        ("BASE_URL", "", "such as https://example.com/stats"),
        ("BASE_URL", "example.com/stats", "such as https://example.com/stats"),
        ("BASE_URL", "https://example.com/?a", "such as https://example.com/stats"),
        ("BASE_URL", 'https://example.com/"', "such as https://example.com/stats"),
        ("REVERSE_DNS", "1", "on or off"),
        ("KEY_DIRECTORIES", "chatgpt.com,example.com", some),
        ("KEY_DIRECTORIES", "chatgpt.com,*", "not *"),
        ("RAY", "local", "ray://HOST:PORT"),
        ("RAY", "http://ray.internal:10001", "ray://HOST:PORT"),
        ("LAKE", "s3:bucket", "such as s3://bucket/prefix"),
        ("LAKE_CACHE_MIB", "0", "at least 1,"),
        ("PRICE_PER_GB", "0.09", "an amount and a currency, such as 0.09 EUR"),
        ("LOG_LEVEL", "INFO", "one of debug, info, warning, error"),
    ):
        message = complaint(**{f"READERSHIP_{name}": value})
        assert f"READERSHIP_{name}" in message
        assert limit in message


def test_address_of_a_ray_cluster() -> None:
    for address in ("", "auto", "10.0.0.1:6379", "ray://ray.internal:10001", "ray://[::1]:10001"):
        assert settings.read({"READERSHIP_RAY": address}).ray == address


def test_variables_of_others_and_of_the_tests_are_ignored() -> None:
    environ = {"READERSHIP_TEST_AGENTS": "x", "READERSHIPS": "x", "PATH": "x", "READERSHIP_TRUSTED_PROXIES": "::1, *"}
    assert settings.read(environ).trusted_proxies == "::1, *"


def test_table_of_the_docs_has_every_setting_as_it_is_declared() -> None:
    lines = [
        f"| `{settings.variable(name)}` | {each.default} | {each.meaning} |" for name, each in settings.SETTINGS.items()
    ]
    assert "\n".join(["|---|---|---|", *lines, ""]) in (ROOT / "docs" / "running.md").read_text()


def test_lake_is_a_folder_or_a_prefix_in_an_object_store(tmp_path: Path) -> None:
    assert settings.read({}, tmp_path).lake == tmp_path / "lake"
    read = settings.read({"READERSHIP_LAKE": "s3://bucket/prefix/", "READERSHIP_LAKE_CACHE_MIB": "2"}, tmp_path)
    assert (str(read.lake), read.lake.lake.cache_bytes) == ("s3://bucket/prefix", 2 << 20)
    assert read.lake.local == tmp_path / "lake"
    assert pickle.loads(pickle.dumps(read)).lake == read.lake  # as sent to a server process


def test_settings_with_a_large_environment_fit_into_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x" * 100_000)
    read = settings.read(os.environ, tmp_path)
    pickled = pickle.dumps(read)
    assert len(pickled) < 16 * 1024
    assert pickle.loads(pickled) == read


@pytest.mark.parametrize("name", ["a[b", "a]b", "a%20b", "a\\b", "date=2026-09-15", os.fsdecode(b"a\xffb")], ids=ascii)
def test_path_that_the_libraries_cannot_read_is_refused_also_behind_a_symbolic_link(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(name)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lake").symlink_to(tmp_path / name)
    for data in (tmp_path / name, tmp_path / name / "data", tmp_path / "link", tmp_path / "data"):
        with pytest.raises(InvalidSetting, match="must not contain|must be UTF-8") as caught:
            settings.read({}, data)
        str(caught.value).encode()  # can be printed


def test_password_of_the_database_is_in_no_text(tmp_path: Path) -> None:
    url = "postgresql+psycopg://user:pass-word@database.test/readership"
    read = settings.read({"READERSHIP_DATABASE_URL": url}, tmp_path)
    assert "pass-word" in read.hot_log.url
    assert "pass-word" not in f"{read!r} {read.hot_log!r} {read.hot_log}"


def test_database_on_a_server_has_the_hot_log_too(tmp_path: Path) -> None:
    for scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        read = settings.read({"READERSHIP_DATABASE_URL": f"{scheme}://user@database.test/readership"}, tmp_path)
        assert read.database_url == "postgresql://user@database.test/readership"
        assert read.hot_log == Server(read.database_url, "the database readership on database.test")


def test_other_database_is_refused_without_its_url(tmp_path: Path) -> None:
    for url in ("mysql://secret@host/db", "postgresql+psycopg2://secret@host/db", "sqlite:///", ""):
        with pytest.raises(InvalidSetting, match="must begin with postgresql:// or sqlite:///") as caught:
            settings.read({"READERSHIP_DATABASE_URL": url}, tmp_path)
        assert "secret" not in str(caught.value)


def test_network_is_used_only_if_a_setting_allows_it() -> None:
    default = settings.read({})
    assert (default.reverse_dns, default.key_directories) == (False, ())
    chosen = settings.read(
        {"READERSHIP_REVERSE_DNS": "on", "READERSHIP_KEY_DIRECTORIES": " ChatGPT.com , agent.bot.goog"}
    )
    assert (chosen.reverse_dns, chosen.key_directories) == (True, ("chatgpt.com", "agent.bot.goog"))
    assert settings.read({"READERSHIP_KEY_DIRECTORIES": "*"}).key_directories == tuple(signature_agents())


def test_options_take_precedence_over_the_variables() -> None:
    chosen = settings.read({"READERSHIP_REVERSE_DNS": "on", "READERSHIP_KEY_DIRECTORIES": "*"})
    assert with_options(chosen, is_reverse_dns=False) == chosen
    assert with_options(chosen, is_reverse_dns=False, key_directories="").key_directories == ()
    assert with_options(settings.read({}), is_reverse_dns=True, key_directories="chatgpt.com").reverse_dns
    with pytest.raises(InvalidSetting, match="--key-directories must be"):
        with_options(chosen, is_reverse_dns=False, key_directories="example.com")


def test_caches_share_their_maximum_size() -> None:
    config = settings.read({"READERSHIP_CACHE_MIB": "100"})
    assert config.cache_bytes + config.user_agents_bytes == 100 * 1024 * 1024
    assert config.user_agents_bytes == pytest.approx(100 * 1024 * 1024 / 8)
