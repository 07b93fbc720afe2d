"""Pull requests and errors as the pages of jobs show them."""

from api.dashboard.pages.jobs.job_view import PullRequest, pull_request, sentence


def test_pull_request_is_linked_by_its_number() -> None:
    for url, label in {
        "https://forge.example/owner/name/pull/7": "Pull request 7",
        "http://forge.example/owner/name/pulls/7/": "Pull request 7",
        "https://forge.example/owner/name": "https://forge.example/owner/name",
    }.items():
        assert pull_request(url) == PullRequest(label, url)
    for url in ("javascript://forge.example/pull/7", "https:/pull/7", "/pull/7", "https://[/7", ""):
        assert pull_request(url) == PullRequest(url, None)


def test_error_is_shown_as_a_sentence() -> None:
    sentences = {"no space left": "No space left.", "Stop!": "Stop!", "why?": "Why?", "": "."}
    assert {detail: sentence(detail) for detail in sentences} == sentences
