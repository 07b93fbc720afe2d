"""Country and language of a request, by independent examples."""

import os
from pathlib import Path

import pytest

from api import environment
from api.errors import InvalidSetting
from ingest.hits.evidence import Evidence
from ingest.hits.hit import Hit
from ingest.hits.row import Site, row
from ingest.places import country, database
from ingest.places.language import language
from tests.ingest.places import mmdb
from warehouse.schema import HOT

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("de", "de"), ("de-DE,de;q=0.9,en;q=0.8", "de-DE"), ("pt-br", "pt-BR"), ("zh-Hant-TW,zh;q=0.9", "zh-TW"),
        ("zh-Hans", "zh"), ("es-419,es;q=0.9", "es"), ("en ; q=0.5", "en"), ("fil-PH", "fil-PH"),
        ("de-CH-1996", "de-CH"), ("*", None), ("english", None), ("", None), (None, None), ("de_DE", None),
        ("en\x00", None), ("de" + ",en" * 100_000, "de"),
    ],
)  # fmt: skip
def test_language_is_the_first_one_of_the_header(header: str | None, expected: str | None) -> None:
    assert language(header) == expected


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Berlin", "DE"), ("Europe/Oslo", "NO"), ("Asia/Calcutta", "IN"), ("Asia/Kolkata", "IN"),
        ("Europe/Kiev", "UA"), ("America/Buenos_Aires", "AR"), ("US/Pacific", "US"), ("America/Toronto", "CA"),
        ("Asia/Taipei", "TW"), ("Atlantic/Reykjavik", "IS"), ("Africa/Timbuktu", "ML"), ("Africa/Asmera", "ER"),
        ("CET", None), ("EST", None), ("UTC", None), ("Etc/GMT+3", None), ("Mars/Olympus", None), ("", None),
        (None, None),
    ],
)  # fmt: skip
def test_time_zone_has_one_country(zone: str | None, expected: str | None) -> None:
    assert country.of_time_zone(zone) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"cf-ipcountry": "DE"}, "DE"),
        ({"cloudfront-viewer-country": "us "}, "US"),
        ({"cf-ipcountry": "XX"}, None),
        ({"cf-ipcountry": "T1"}, None),
        ({"cf-ipcountry": "XX", "x-vercel-ip-country": "FR"}, "FR"),
        ({"x-country": "DE"}, None),
        ({}, None),
    ],
)
def test_header_of_an_edge_network_names_the_country(headers: dict[str, str], expected: str | None) -> None:
    assert country.of_headers(headers) == expected


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence("9.9.9.9", country="FR", time_zone="Asia/Tokyo"), "FR"),
        (Evidence("9.9.9.9", time_zone="Asia/Tokyo"), "DE"),
        (Evidence("2a00::1"), "PL"),
        (Evidence("8.8.8.8"), "US"),
        (Evidence("1.1.1.1", time_zone="Asia/Tokyo"), "JP"),
        (Evidence("10.0.0.1", time_zone="Asia/Tokyo"), "JP"),
        (Evidence("unix:", time_zone="UTC"), None),
        (Evidence(time_zone="x"), None),
    ],
)
def test_header_decides_the_country_before_the_address_and_then_the_time_zone(
    tmp_path: Path, evidence: Evidence, expected: str | None
) -> None:
    records = {
        "9.9.9.0/24": {"country": {"iso_code": "DE"}, "registered_country": {"iso_code": "US"}},
        "2a00::/16": {"country": "Poland", "country_code": "PL"},
        "8.8.8.8/32": {"country": "us"},
        "1.1.1.0/24": {"registered_country": {"iso_code": "AU"}},
    }
    site = Site(country_database=mmdb.write(tmp_path / "countries.mmdb", records))
    view = Hit("/", 0, FIREFOX, None, {}, None, None, None, evidence)
    stored = dict(zip(HOT.names, row("site", view, "server", 0, site=site), strict=True))
    assert (stored["traffic"], stored["country"]) == ("human", expected)


def test_file_that_is_truncated_while_it_is_used_ends_nothing(tmp_path: Path) -> None:
    file = mmdb.write(tmp_path / "countries.mmdb", {"9.9.9.0/24": {"country": {"iso_code": "DE"}}})
    assert database.of_address(file, "9.9.9.9") == "DE"
    os.truncate(file, 0)
    assert database.of_address(file, "9.9.9.9") == "DE"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"PK", "is not a MaxMind DB file, or it is damaged"),
        ({"9.9.9.0/24": {"as_name": "x"}}, "has no countries, but is of type GeoLite2-ASN"),
    ],
)
def test_setting_names_a_file_with_countries(tmp_path: Path, content: object, fault: str) -> None:
    file = tmp_path / "countries.mmdb"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif isinstance(content, dict):
        mmdb.write(file, content, "GeoLite2-ASN")
    with pytest.raises(InvalidSetting, match=f"{file} {fault}"):
        environment.country_database(str(file))
    assert not environment.country_database("")
