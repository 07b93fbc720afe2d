"""Referrers and campaigns have the channel that an owner would name."""

import csv
from pathlib import Path

from ingest.channels.channels import CHANNELS, CLICKS, NAMES, channel, of_referrer

FIELDS = ("host", "utm_source", "utm_medium", "click")


def wrong_rows(name: str) -> tuple[list[dict[str, str]], dict[tuple[str, ...], str]]:
    """Return the rows of a file, and those with another channel than `channel` returns, each with the latter."""
    with (Path(__file__).parent / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    got = [channel(*(row[each] or None for each in FIELDS)) for row in rows]
    known = [(row["channel"], *map(row.__getitem__, FIELDS)) for row in rows]
    return rows, {row: name for row, name in zip(known, got, strict=True) if name != row[0]}


def test_host_and_parameters_have_a_channel_and_parameters_have_priority() -> None:
    """The hosts are those of the Apache log from which sample_data was made, and of the tests of other parsers."""
    rows, wrong = wrong_rows("referrers_and_campaigns.csv")
    assert wrong == {}
    assert len({tuple(row.values()) for row in rows}) == len(rows) >= 200
    assert {row["channel"] for row in rows} == {*NAMES}


def test_published_cases_have_the_channel_of_their_source() -> None:
    """The rules matched 123 of the 235 rows when they were first compared.

    Then rules were added for the others: that 234 match now is no measure of accuracy. The row that differs has the
    `utm_source` that Substack adds to links in its letters, where the medium is `email`, and on its pages alike.
    `published.csv` has Google's list of sources without shops and hosts of blogs, the campaigns of Adobe's test whose
    kind is not that every campaign is paid, and PostHog's test with clicks that were recorded.
    """
    rows, wrong = wrong_rows("published.csv")
    assert wrong == {("Email", "", "substack", "", ""): "Referral"}
    assert len({(*map(row.get, FIELDS),) for row in rows}) == len(rows) >= 120
    assert all(row["source"].startswith("https://") for row in rows)


def test_table_has_each_value_once() -> None:
    assert NAMES == (
        "Paid", "Email", "Affiliates", "AI assistants", "Search", "Social", "Video", "Referral", "Direct",
    )  # fmt: skip
    for field in ("sites", "campaigns", "media"):
        values = [value for each in CHANNELS for value in getattr(each, field)]
        assert sorted({value for value in values if values.count(value) > 1}) == []
        assert [value for value in values if value != value.lower()] == []
    assert len({*CLICKS}) == len(CLICKS)


def test_referrer_within_the_site_has_no_channel() -> None:
    hosts = ["www.shop.example", "shop.example", "blog.shop.example", "google.com", None]
    for own in ("shop.example", "www.shop.example"):
        assert [of_referrer(host, frozenset({own})) for host in hosts] == [None, None, "Referral", "Search", "Direct"]
