"""Pull requests and errors as the pages of jobs show them."""

import pytest

from api.dashboard.pages.jobs.job_view import PullRequest, pull_request, sentence


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("https://forge.example/owner/name/pull/7", "Pull request 7"),
        ("http://forge.example/owner/name/pulls/7/", "Pull request 7"),
        ("https://forge.example/owner/name", "https://forge.example/owner/name"),
    ],
)
def test_pull_request_is_linked_by_its_number(url: str, label: str) -> None:
    assert pull_request(url) == PullRequest(label, url)


@pytest.mark.parametrize("url", ["javascript://forge.example/pull/7", "https:/pull/7", "/pull/7", "https://[/7", ""])
def test_address_that_is_no_web_page_is_not_linked(url: str) -> None:
    assert pull_request(url) == PullRequest(url, None)


@pytest.mark.parametrize(
    ("detail", "shown"), [("no space left", "No space left."), ("Stop!", "Stop!"), ("why?", "Why?"), ("", ".")]
)
def test_error_is_shown_as_a_sentence(detail: str, shown: str) -> None:
    assert sentence(detail) == shown
