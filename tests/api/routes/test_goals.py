"""Goals over HTTP and on the command line: added with a normalised path, listed, refused and removed."""

import httpx

from tests.api.cli.console import call, complaint, result
from tests.processes.running import Running, new_key


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
        ({**new, "more": 1}, "unknown field"),
    ):
        refused = httpx.post(url, json=wrong, headers=write)
        assert (refused.status_code, text in refused.json()["detail"]) == (400, True), refused.text
    gone = f"{url}/{added.json()['id']}"
    assert httpx.delete(gone, headers=read).status_code == 403
    assert [httpx.delete(gone, headers=write).status_code for _ in range(2)] == [204, 404]
    assert httpx.get(url, headers=read).json() == {"goals": []}
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
