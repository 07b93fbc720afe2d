"""The rules classify people, AI agents and bots, also on user agents that were not used to write the rules."""

from collections import Counter

import pytest

from benchmarks.recall import Labelled, labelled, misses, recall
from ingest.classification.classifier import Traffic, classify

ROWS = labelled()
FLOORS: dict[Traffic, float] = {"human": 99.8, "ai": 97.0, "bot": 98.0}
"""Minimum recall of each class, in percent; docs/classification.md has the measured recall."""


def of_class(traffic: Traffic) -> list[Labelled]:
    return [row for row in ROWS if row.traffic == traffic]


@pytest.mark.long
@pytest.mark.parametrize("traffic", FLOORS)
def test_recall_of_a_class_is_at_least_its_floor(traffic: Traffic) -> None:
    rows = of_class(traffic)
    missed = "\n".join(f"{row.group}: {answer.rule}: {row.user_agent}" for row, answer in misses(rows))
    assert recall(rows).percent >= FLOORS[traffic], f"missed:\n{missed}"


@pytest.mark.long
@pytest.mark.parametrize("traffic", FLOORS)
def test_recall_of_the_held_out_rows_is_at_most_1_5_points_lower(traffic: Traffic) -> None:
    held_out = recall(row for row in of_class(traffic) if row.held_out)
    seen = recall(row for row in of_class(traffic) if not row.held_out)
    assert held_out.percent >= seen.percent - 1.5


def test_all_people_of_measured_traffic_are_people() -> None:
    assert [row.user_agent for row, _ in misses(row for row in ROWS if row.group == "measured traffic")] == []


def test_labelled_set_has_each_user_agent_once_and_every_class_in_both_halves() -> None:
    assert len({row.user_agent for row in ROWS}) == len(ROWS) >= 1_500
    assert min(Counter((row.traffic, row.held_out) for row in ROWS).values()) >= 30


@pytest.mark.parametrize(
    ("user_agent", "rule"),
    [
        ("SomeLibrary/2.1", "bot:http-library"),
        ("some-new-http-client/0.1 (linux; x86_64)", "bot:http-library"),
        ("Podcatcher/4.2 (podcast app)", "bot:podcast-client"),
        ("News/17 CFNetwork/1490.0.4 Darwin/23.2.0", "bot:app-client"),
        ("Mozilla/5.0", "bot:not-a-browser"),
        ("what is this", "bot:not-a-browser"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome", "bot:not-a-browser"),
        ("Lynx/2.9.0 libwww-FM/2.14 SSL-MM/1.4.1", "human:text-browser"),
        ("Nokia6300/2.0 (05.50) Profile/MIDP-2.0 Configuration/CLDC-1.1", "human:feature-phone"),
        ("Dalvik/2.1.0 (Linux; U; Android 13; CUBOT P80 Build/TP1A)", "human:dalvik"),
        ("Mozilla/5.0 (PLAYSTATION 3; 4.90)", "human:console"),
        ("HbbTV/1.6.1 (; TV 1)", "human:television"),
    ],
)
def test_only_the_shape_of_a_browser_or_a_device_is_a_person(user_agent: str, rule: str) -> None:
    assert classify(user_agent).rule == rule


IPHONE_VIEW = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148"
)
ANDROID_VIEW = (
    "Mozilla/5.0 (Linux; Android 13; {} Build/TP1A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 "
    "Chrome/116.0.0.0 Mobile Safari/537.36"
)
APPS = ["newsreader/6.2", "QRCodeScanner/3.1", "HealthMonitor/1.2", "EstateAgent/3.1", "Microsoft Outlook/16.0", "RSS"]


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("view", [IPHONE_VIEW, ANDROID_VIEW.format("moto g(30)")])
def test_web_view_of_an_app_whose_name_is_a_habit_of_bots_is_a_person(view: str, app: str) -> None:
    assert classify(f"{view} {app}").rule == "human:browser"


def test_web_view_on_a_device_whose_name_is_a_habit_of_bots_is_a_person() -> None:
    assert classify(ANDROID_VIEW.format("Spider Robot")).rule == "human:browser"


@pytest.mark.parametrize(
    "bot",
    ["https://example.com/bot", "(compatible; LinkChecker/1)", "mail@example.com", "HeadlessChrome (x)", "GPTBot/1.0"],
)
@pytest.mark.parametrize("view", [IPHONE_VIEW, ANDROID_VIEW.format("SM-G892A")])
def test_bot_that_takes_the_name_of_a_web_view_is_no_person(view: str, bot: str) -> None:
    assert classify(f"{view} {bot}").traffic != "human"


@pytest.mark.parametrize(
    ("user_agent", "rule"),
    [
        ("URL/Emacs Emacs/28.1 (X11; x86_64-pc-linux-gnu)", "human:text-browser"),
        ("Mozilla/5.0 (X11; Linux) NetSurf/3.11", "human:browser"),
        ("uzbl (Webkit 1.3) (Linux i686 [i686])", "human:browser"),
        ("AWEB/3.4", "human:browser"),
        ("Mozilla/5.0 (Linux; Linux) Cobalt/20.lts.2.0-gold Starboard/11", "human:television"),
    ],
)
def test_rare_browser_without_a_common_engine_is_a_person(user_agent: str, rule: str) -> None:
    assert classify(user_agent).rule == rule


@pytest.mark.parametrize("browser", ["Comet/1.0", "ChatGPT Atlas/1.2025", "Dia/0.45", "Edg/142.0.0.0 Copilot/1"])
def test_browser_with_ai_in_it_is_a_person(browser: str) -> None:
    chrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0"
    assert classify(f"{chrome} Safari/537.36 {browser}").rule == "human:browser"


def test_google_extended_is_a_name_for_robots_txt_and_no_ai_agent() -> None:
    assert classify("Google-Extended").traffic == "bot"
