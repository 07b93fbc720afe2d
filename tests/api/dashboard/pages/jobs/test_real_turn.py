"""A job that is started on the page and worked on by the server's worker, with a real repository and a forge double."""

from pathlib import Path

import pytest

from agent.jobs import store
from agent.jobs.job import Status
from tests.agent.service.site import REPOSITORY, SECRETS, WRITE, make_site
from tests.api.dashboard.pages.jobs.jobs import Jobs, text_of
from tests.api.dashboard.site import opened
from tests.processes.waiting import until


@pytest.mark.long
def test_prompt_of_the_form_becomes_a_pull_request(tmp_path: Path) -> None:
    with make_site(tmp_path) as site, opened(tmp_path / "data", SECRETS) as dashboard:
        jobs = Jobs.create(
            dashboard,
            repository=f"{site.git.url}/{REPOSITORY}.git",
            git_token="env:GIT_TOKEN",
            forge=site.forge.kind,
            api_base=site.forge.api,
            preset="command",
            command=WRITE,
            is_sandboxed=False,
        )
        assert jobs.send("", "Write a page").status_code == 303
        [id] = jobs.ids()
        until(lambda: store.find(dashboard.engine, jobs.project, id).status is not Status.ACTIVE)
        page = jobs.get(f"/{id}")
    [pull] = site.pulls(id)
    assert f">Pull request {pull.number}</a>" in page, text_of(page)
    assert "State Completed" in text_of(page)
    assert "Worked for" in text_of(page)
    assert site.pushed(id)
