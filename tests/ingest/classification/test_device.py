"""A user agent has the browser, system and device of its first 1,024 characters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from user_agents import parse  # type: ignore[import-untyped]  # ships no types

from ingest.classification.classifier import classify_all
from ingest.classification.device import Device

SAMPLE = [json.loads(line)["ua"] for line in (Path(__file__).parent / "ua_sample.jsonl").read_text().splitlines()]

KHTML = "AppleWebKit/537.36 (KHTML, like Gecko)"
WINDOWS = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {KHTML}"
IOS = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
CHROME = "Chrome/131.0.0.0 Safari/537.36"

DEVICES = [
    (f"{WINDOWS} {CHROME}", Device("Chrome", "Windows", "desktop")),
    ("Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0", Device("Firefox", "Linux", "desktop")),
    (f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) {IOS}", Device("Mobile Safari", "iOS", "mobile")),
    (f"Mozilla/5.0 (iPad; CPU OS 17_1 like Mac OS X) {IOS}", Device("Mobile Safari", "iOS", "tablet")),
    (
        f"Mozilla/5.0 (Linux; Android 10; K) {KHTML} Chrome/131.0.0.0 Mobile Safari/537.36",
        Device("Chrome Mobile", "Android", "mobile"),
    ),
    (f"Mozilla/5.0 (Linux; Android 9; SM-T510) {KHTML} {CHROME}", Device("Chrome", "Android", "tablet")),
    (f"Mozilla/5.0 (Web0S; Linux/SmartTV) {KHTML} {CHROME}", Device("Chrome", "Web0S", "tv")),
    (
        (
            "Mozilla/5.0 (New Nintendo 3DS like iPhone) AppleWebKit/536.30 (KHTML, like Gecko) NX/3.0.0.5.22 "
            "NintendoBrowser/1.10"
        ),
        Device("NetFront NX", "iOS", "console"),
    ),
    ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", Device("Googlebot", None, "bot")),
    (f"{WINDOWS} {CHROME} ExampleBot/1.0", Device("ExampleBot", "Windows", "bot")),
    (f"{WINDOWS} YahooApp/1.0 RobotMasterApp/2.3 {CHROME}", Device("Chrome", "Windows", "desktop")),
    ("undici", Device(None, None, "other")),
    ("", Device(None, None, "other")),
]


def describe(user_agent: str) -> Device:
    return classify_all([user_agent])[0][1]


@pytest.mark.parametrize(("user_agent", "expected"), DEVICES, ids=lambda value: str(value)[:60])
def test_user_agent_has_its_browser_system_and_device_type(user_agent: str, expected: Device) -> None:
    assert describe(user_agent) == expected


@pytest.mark.parametrize("user_agent", SAMPLE, ids=lambda ua: ua[:60])
def test_families_are_those_of_the_user_agents_package_on_its_own_parser(user_agent: str) -> None:
    theirs, ours = parse(user_agent), describe(user_agent)
    assert (ours.browser or "Other", ours.os or "Other") == (theirs.browser.family, theirs.os.family)
    assert ours.device == "bot" or not theirs.is_bot


@given(st.text(st.characters(codec=None), max_size=3000))
def test_any_text_is_described_by_its_first_1024_characters(text: str) -> None:
    assert describe(text) == describe(text[:1024])


@pytest.mark.long
def test_tables_of_the_pure_python_parser_are_never_loaded() -> None:
    # They would add 0.5 s to every start. The test needs a process without the modules that other tests loaded.
    program = (
        "import sys; from ingest.classification.classifier import classify; classify('curl/8'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "ua_parser" in loaded
    assert "ua_parser_builtins.regexes" not in loaded
