"""Which readers and sources filters can select: a number of the others is unknown, and not 0."""

import pytest

from warehouse.columns.filters import Filters


@pytest.mark.parametrize(
    ("filters", "traffic"),
    [
        ({}, ("human", "ai", "bot")),
        ({"path": "/docs/*", "device": "mobile", "referrerHost": "a.example"}, ("human", "ai", "bot")),
        ({"traffic": "bot"}, ("bot",)),
        ({"operator": "OpenAI"}, ("ai",)),
        ({"purpose": "search"}, ("ai",)),
        ({"agent": "GPTBot"}, ("ai", "bot")),
        ({"verification": "claimed"}, ("ai", "bot")),
        ({"verification": "spoofed"}, ("bot",)),
        ({"browser": "Firefox"}, ("human",)),
        ({"rule": "bot:scanner"}, ("bot",)),
        ({"agent": "GPTBot", "traffic": "ai"}, ("ai",)),
        ({"operator": "OpenAI", "browser": "Firefox"}, ()),
    ],
    ids=str,
)
def test_filters_leave_out_readers_who_cannot_have_the_value(filters: dict[str, str], traffic: tuple[str, ...]) -> None:
    assert Filters(**filters).selected_traffic == traffic  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("filters", "sources"),
    [
        ({"browser": "Firefox"}, ("beacon", "server", "log")),
        ({"source": "beacon"}, ("beacon",)),
        ({"status": "200"}, ("server", "log")),
        ({"format": "text/markdown", "source": "log"}, ("log",)),
        ({"status": "200", "source": "beacon"}, ()),
    ],
    ids=str,
)
def test_only_servers_and_logs_have_a_status_and_a_format(filters: dict[str, str], sources: tuple[str, ...]) -> None:
    assert Filters(**filters).selected_sources == sources  # type: ignore[arg-type]
