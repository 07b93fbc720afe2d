"""Requirements of jobs that a project does not meet, and the settings on the page."""

from pathlib import Path

import pytest

from tests.api.dashboard.pages.jobs.jobs import Jobs, text_of
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import COMMAND
from warehouse.control import projects

SECRET_SETTINGS = {
    "preset": "command", "command": ("true",), "git_token": "env:TOKEN_NAME",
    "model_base": "https://models.internal.example/v1", "model_key": "file:/etc/readership/model-key",
    "webhook": "https://hooks.example/T00/secret-part", "webhook_secret": "env:HOOK_NAME",
    "api_base": "https://forge.internal.example/api",
}  # fmt: skip


def test_project_without_a_repository_names_the_command_and_has_no_form(dashboard: Dashboard) -> None:
    projects.create(dashboard.engine, "bare", (), 0)
    jobs = Jobs(dashboard, "bare", dashboard.visitor("owner"))
    page = jobs.get()
    assert "This project has no repository and no coding agent yet." in page
    assert f"{COMMAND} --data {dashboard.data} project agent bare" in page
    assert "<textarea" not in page
    response = jobs.post("", prompt="Fix it", key="k" * 22)
    assert response.status_code == 409
    assert "has no repository" in response.text
    assert jobs.ids() == []


def test_project_without_a_model_names_the_command(jobs: Jobs) -> None:
    jobs.configure(preset="opencode")
    page = jobs.get()
    assert "No model is set for opencode" in page
    assert f"{COMMAND} --data {jobs.dashboard.data} project agent {jobs.project} --model MODEL" in page
    assert "<textarea" not in page


@pytest.mark.long
def test_coding_agent_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """Ask a server that works on jobs itself: the programs of other machines are unknown."""
    with opened(tmp_path / "data") as dashboard:
        jobs = Jobs.create(dashboard, preset="command", command=("no-such-agent", "--flag"))
        assert "The coding agent no-such-agent is not installed on this machine." in jobs.get()
        jobs.configure(preset="command", command=("true",))
        assert "not installed" not in jobs.get()


def test_settings_are_shown_without_the_values_of_secrets_model_servers_and_webhooks(jobs: Jobs) -> None:
    text = text_of(jobs.get())
    for row in ("Git token not set --git-token", "Model key not set --model-key", "Webhook not set --webhook"):
        assert row in text
    jobs.configure(**SECRET_SETTINGS)
    page = jobs.get()
    rows = ("Git token set --git-token", "Model server set --model-base", "Webhook set --webhook", "Branch main --ref")
    for row in rows:
        assert row in text_of(page)
    for name in ("git_token", "model_base", "model_key", "webhook", "webhook_secret", "api_base"):
        assert str(SECRET_SETTINGS[name]) not in page
    assert f"project agent {jobs.project} OPTION VALUE" in page
