"""The committed log is the generator's output, and awk counts in it what `expected_views.json` contains."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import date, timedelta
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from sample_data import generate_posts

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "sample_data"
LOG = (FOLDER / "access.log").read_bytes()
LINES = LOG.split(b"\n")[:-1]
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected_views.json").read_text())
SEPTEMBER = [str(date(2026, 9, 1) + timedelta(days=day)) for day in range(30)]

AWK_AI_VIEWS = r"""
BEGIN { FS = "\""; count = split(agents, tokens, ",") }
$2 ~ /^GET [^ ]+ HTTP\/[0-9.]+$/ && $3 ~ /^ (2[0-9][0-9]|304) / {
    split($2, request, " ")
    path = tolower(request[2])
    sub(/[?#].*/, "", path)
    if (path ~ /\.(css|js|json|png|webp|ico|woff2|gz|xml|rss|atom)$/) next
    if (path ~ /^\/(robots\.txt|ads\.txt|humans\.txt|\.well-known\/.*)$/) next
    split(substr($1, index($1, "[") + 1), t, /[\/: \]]/)
    month = t[2] == "Aug" ? -31 : t[2] == "Oct" ? 30 : 0
    zone = substr(t[7], 2, 2) * 60 + substr(t[7], 4, 2)
    minute = (month + t[1]) * 1440 + t[4] * 60 + t[5] - (substr(t[7], 1, 1) == "-" ? -zone : zone)
    for (i = 1; i <= count; i++)
        if (index($6, tokens[i])) printf "%s\t2026-09-%02d\t%s\n", tokens[i], int(minute / 1440), request[2]
}
"""
AWK_METHODS = r"""
BEGIN { FS = "\"" }
$2 ~ /^[A-Z]+ [^ ]+ HTTP\/[0-9.]+$/ && $2 !~ /^GET / { count++ }
END { print NR, count }
"""
AGENT_TOKENS = {"Claude Code": "claude-code"}


def awk(program: str, **variables: str) -> str:
    settings = [word for name, value in variables.items() for word in ("-v", f"{name}={value}")]
    command = ["awk", *settings, program, str(FOLDER / "access.log")]
    return subprocess.run(command, env=os.environ | {"LC_ALL": "C"}, check=True, capture_output=True, text=True).stdout


def test_generator_reproduces_the_committed_files_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "sample_data.generate", str(tmp_path)], cwd=ROOT, check=True)
    for name in ("access.log", "expected_views.json"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()


def test_generator_of_posts_reproduces_the_committed_file_byte_for_byte(tmp_path: Path) -> None:
    generate_posts.main(tmp_path)
    assert (tmp_path / "posts.ndjson").read_bytes() == (FOLDER / "posts.ndjson").read_bytes()


def test_each_of_about_five_thousand_lines_is_a_page_view_or_skipped_for_one_reason() -> None:
    assert LOG.endswith(b"\n")
    assert 4_800 <= len(LINES) <= 5_200
    assert len(LINES) == EXPECTED["lines"]
    assert EXPECTED["lines"] == EXPECTED["page_views"] + EXPECTED["errors"] + sum(EXPECTED["skipped"].values())
    assert EXPECTED["page_views"] == EXPECTED["totals"]["total"] + EXPECTED["bots"]
    assert all(EXPECTED["skipped"].values())


def test_totals_are_the_sums_of_the_paths_of_the_days_and_of_the_agents() -> None:
    for traffic in ("human", "ai"):
        assert EXPECTED["totals"][traffic] == sum(row[traffic] for row in EXPECTED["views"])
        assert EXPECTED["totals"][traffic] == sum(row[traffic] for row in EXPECTED["by_day"].values())
    assert EXPECTED["totals"]["ai"] == sum(EXPECTED["by_agent"].values())
    for row in (EXPECTED["totals"], *EXPECTED["views"]):
        assert row["total"] == row["human"] + row["ai"] > 0


def test_paths_are_ordered_by_total_then_by_bytes() -> None:
    rows = [(-row["total"], row["path"].encode()) for row in EXPECTED["views"]]
    assert rows == sorted(rows)
    assert len({path for _, path in rows}) == len(rows)


def test_days_are_the_thirty_of_september_and_the_share_of_ai_rises() -> None:
    assert list(EXPECTED["by_day"]) == SEPTEMBER
    days = list(EXPECTED["by_day"].values())
    shares = [sum(day["ai"] for day in ten) / sum(day["human"] for day in ten) for ten in (days[:10], days[-10:])]
    assert shares[1] > 1.5 * shares[0]


def test_some_pages_are_read_by_ai_alone_and_pages_of_bots_alone_are_absent() -> None:
    rows = {row["path"]: row for row in EXPECTED["views"]}
    assert rows["/llms.txt"]["human"] == rows["/docs/api.md"]["human"] == 0
    assert b"GET /blog/page/9" in LOG
    assert "/blog/page/9" not in rows


def test_addresses_are_those_of_documentation() -> None:
    networks = [ip_network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")]
    addresses = {ip_address(match.decode()) for match in re.findall(rb"^([0-9a-f.:]+) - ", LOG, re.MULTILINE)}
    assert {address.version for address in addresses} == {4, 6}
    for address in addresses:
        assert any(address in network for network in networks)


ODD = dict(line.split("\t") for line in Path(__file__).with_name("odd_lines.tsv").read_text().splitlines())
"""Regular expressions of odd kinds of lines, by kind."""


def test_each_odd_kind_of_line_is_in_the_log() -> None:
    kinds = {kind: re.compile(pattern.encode()) for kind, pattern in ODD.items()}
    assert {kind for kind, pattern in kinds.items() if not any(map(pattern.search, LINES))} == set()
    assert len(kinds) == 46


def test_awk_counts_the_same_views_for_each_agent_day_and_page_and_the_same_methods() -> None:
    tokens = {agent: AGENT_TOKENS.get(agent, agent) for agent in EXPECTED["by_agent"]}
    found = [line.split("\t") for line in awk(AWK_AI_VIEWS, agents=",".join(tokens.values())).splitlines()]
    assert Counter(token for token, *_ in found) == {
        tokens[name]: views for name, views in EXPECTED["by_agent"].items()
    }
    by_day = Counter(day for _, day, _ in found)
    assert [by_day[day] for day in SEPTEMBER] == [row["ai"] for row in EXPECTED["by_day"].values()]
    of_llms_txt = sum(target.split("?")[0] == "/llms.txt" for *_, target in found)
    assert of_llms_txt == next(row["ai"] for row in EXPECTED["views"] if row["path"] == "/llms.txt")
    assert awk(AWK_METHODS).split() == [str(EXPECTED["lines"]), str(EXPECTED["skipped"]["method"])]
