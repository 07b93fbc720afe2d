"""All pages with the rights that they require."""

from dataclasses import replace

from api.accounts import passwords
from api.dashboard.pages import reference
from api.dashboard.pages.entry import account, sign_in, welcome
from api.dashboard.pages.jobs import job_list, job_page
from api.dashboard.pages.reading import export, overview, path_list, path_page, projects, why
from api.dashboard.pages.reading.ai import agent, readers
from api.dashboard.pages.reading.requests import cost, errors
from api.dashboard.pages.settings import audit_log, goals, keys, robots, setup, share
from api.dashboard.web.routes import Access, Page
from api.reports import threads


def _shared(*pages: Page, access: Access = Access.SHARED_ALL) -> tuple[Page, ...]:
    """Return pages with their twins for the visitors of a share link."""
    return (*pages, *(replace(page, path=f"/shared/{{share}}{page.path[19:]}", access=access) for page in pages))


def _reports(*pages: Page) -> tuple[Page, ...]:
    """Return pages that compute reports, with their limits."""
    shared, others = threads.SHARED, threads.REPORTS
    return tuple(replace(page, limit=shared if page.path.startswith("/shared/") else others) for page in pages)


def _passwords(*pages: Page) -> tuple[Page, ...]:
    """Return pages whose forms have passwords, with their limit."""
    return tuple(replace(page, limit=passwords.THREADS if page.method == "POST" else None) for page in pages)


PAGES: tuple[Page, ...] = (
    *_passwords(*sign_in.PAGES, *welcome.PAGES, *account.PAGES),
    *reference.PAGES,
    *_reports(*projects.PAGES, *setup.PAGES),
    *keys.PAGES,
    *_reports(*_shared(*overview.PAGES, *export.PAGES, access=Access.SHARED)),
    *_reports(*_shared(*readers.PAGES, *agent.PAGES, *path_list.PAGES, *path_page.PAGES)),
    *_reports(*_shared(*errors.PAGES), *cost.PAGES, *why.PAGES),
    *robots.PAGES,
    *job_list.PAGES,
    *job_page.PAGES,
    *goals.PAGES,
    *share.PAGES,
    *audit_log.PAGES,
)
"""The pages in the order in which a new owner meets them."""
