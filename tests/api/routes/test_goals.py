"""Goals over HTTP and on the command line: added with a normalised path, listed, refused and removed."""

from contextlib import closing

import httpx

from api import settings
from tests.api.cli.console import call, complaint, result
from tests.processes.running import Running, new_key
from warehouse.control import audit, database


def test_goal_is_added_listed_and_removed_by_a_key_that_may_write(service: Running) -> None:
    url = f"{service.url}/v1/projects/goals-http/goals"
    write, read, other = (
        {"Authorization": f"Bearer {new_key(service.data, project, scope)}"}
        for project, scope in (("goals-http", "write"), ("goals-http", "read"), ("goals-other", "write"))
    )
    new = {"name": "Order", "kind": "path", "value": "order/index.html"}
    for headers, status in (({}, 401), (read, 403), (other, 403)):
        assert httpx.post(url, json=new, headers=headers).status_code == status
    added = httpx.post(url, json=new, headers=write)
    assert (added.status_code, added.json()["value"]) == (201, "/order")
    assert httpx.get(url, headers=read).json() == {"goals": [added.json()]}
    for wrong, text in (
        (new, "another goal"),
        ({**new, "name": "x", "value": "/a\0"}, "control character"),
        ({**new, "kind": "scroll"}, "kind"),
        ({"name": "Time", "kind": "event", "value": "engagement"}, "`engagement`"),
        ({**new, "more": 1}, "unknown field"),
    ):
        refused = httpx.post(url, json=wrong, headers=write)
        assert (refused.status_code, text in refused.json()["detail"]) == (400, True), refused.text
    gone = f"{url}/{added.json()['id']}"
    assert httpx.delete(gone, headers=read).status_code == 403
    assert [httpx.delete(gone, headers=write).status_code for _ in range(2)] == [204, 404]
    assert httpx.get(url, headers=read).json() == {"goals": []}
    with closing(database.connect(settings.read({}, service.data).database_url)) as control:
        done = [each for each in audit.entries(control, 0, 50) if each.project == "goals-http"]
    assert [(each.action, each.who) for each in done[:2]] == [
        ("removed a goal", "the API key “test”"),
        ("added a goal", "the API key “test”"),
    ]
    assert set(httpx.put(url, headers=write).headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_goals_of_the_command_line(service: Running) -> None:
    new_key(service.data, "goals-cli")
    added = result(call(service.data, "goal", "add", "goals-cli", "Thanks", "--path", "*thanks*"))
    result(call(service.data, "goal", "add", "goals-cli", "Sign up", "--event", "Signup"))
    listed = result(call(service.data, "goal", "list", "goals-cli"))
    assert [(each["name"], each["kind"], each["value"]) for each in listed] == [
        ("Sign up", "event", "Signup"),
        ("Thanks", "path", "*thanks*"),
    ]
    assert call(service.data, "goal", "add", "goals-cli", "Both", "--path", "/", "--event", "x").status == 2
    assert "another goal" in complaint(call(service.data, "goal", "add", "goals-cli", "Thanks", "--path", "/"))
    assert result(call(service.data, "goal", "remove", "goals-cli", "Thanks"))["id"] == added["id"]
    assert "no goal" in complaint(call(service.data, "goal", "remove", "goals-cli", "Thanks"))


def test_report_counts_a_goal_over_earlier_days_in_json_and_csv(service: Running) -> None:
    headers = {"Authorization": f"Bearer {new_key(service.data, 'goals-report')}"}
    hit = {"userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
    times = {"/": "2026-08-01T10:00:00Z", "/thanks": "2026-08-01T10:01:00Z"}
    hits = [{**hit, "path": path, "timestamp": at, "address": "203.0.113.9"} for path, at in times.items()]
    url = f"{service.url}/v1/analytics/goals-report"
    assert httpx.post(f"{url}/hits", json=hits, headers=headers).json()["accepted"] == 2
    goal = {"name": "Order", "kind": "path", "value": "/thanks"}
    assert httpx.post(f"{service.url}/v1/projects/goals-report/goals", json=goal, headers=headers).status_code == 201
    answer = httpx.get(f"{url}/goals", params={"path": "/"}, headers=headers).json()
    names = ("goal", "traffic", "conversions", "goalVisitors", "visitors", "conversionRate")
    assert [tuple(row[name] for name in names) for row in answer["goals"]] == [
        ("Order", "human", 1, 1, 1, 100.0),
        ("Order", "ai", 0, 0, 0, None),
    ]
    table = httpx.get(f"{url}/goals", params={"by": "country"}, headers={**headers, "Accept": "text/csv"}).text
    assert table.splitlines() == [
        "goal,value,traffic,conversions,goalVisitors,visitors,conversionRate",
        "Order,,human,1,1,1,100.0",
    ]
