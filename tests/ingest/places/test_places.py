"""Country and language of a request, by independent examples."""

import pytest

from ingest.places import country
from ingest.places.language import language


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("de", "de"),
        ("de-DE,de;q=0.9,en;q=0.8", "de-DE"),
        ("pt-br", "pt-BR"),
        ("zh-Hant-TW,zh;q=0.9", "zh-TW"),
        ("zh-Hans", "zh"),
        ("es-419,es;q=0.9", "es"),
        ("en ; q=0.5", "en"),
        ("fil-PH", "fil-PH"),
        ("de-CH-1996", "de-CH"),
        ("*", None),
        ("english", None),
        ("", None),
        (None, None),
        ("de_DE", None),
        ("en\x00", None),
        ("de" + ",en" * 100_000, "de"),
    ],
)
def test_language_is_the_first_one_of_the_header(header: str | None, expected: str | None) -> None:
    assert language(header) == expected


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Berlin", "DE"),
        ("Europe/Oslo", "NO"),
        ("Asia/Calcutta", "IN"),
        ("Asia/Kolkata", "IN"),
        ("Europe/Kiev", "UA"),
        ("America/Buenos_Aires", "AR"),
        ("US/Pacific", "US"),
        ("America/Toronto", "CA"),
        ("Asia/Taipei", "TW"),
        ("Atlantic/Reykjavik", "IS"),
        ("Africa/Timbuktu", "ML"),
        ("Africa/Asmera", "ER"),
        ("CET", None),
        ("EST", None),
        ("UTC", None),
        ("Etc/GMT+3", None),
        ("Mars/Olympus", None),
        ("", None),
        (None, None),
    ],
)
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
