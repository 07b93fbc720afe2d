"""All pages with the rights that they require."""

from api.dashboard.pages.entry import account, sign_in, welcome
from api.dashboard.pages.jobs import job_list, job_page
from api.dashboard.pages.reading import errors, export, overview, path_list, path_page, projects, why
from api.dashboard.pages.reading.ai import agent, readers
from api.dashboard.pages.settings import keys, robots, setup, share
from api.dashboard.web.routes import Page

PAGES: tuple[Page, ...] = (
    *sign_in.PAGES,
    *welcome.PAGES,
    *account.PAGES,
    *projects.PAGES,
    *setup.PAGES,
    *keys.PAGES,
    *overview.PAGES,
    *export.PAGES,
    *readers.PAGES,
    *robots.PAGES,
    *agent.PAGES,
    *path_list.PAGES,
    *path_page.PAGES,
    *errors.PAGES,
    *why.PAGES,
    *job_list.PAGES,
    *job_page.PAGES,
    *share.PAGES,
)
"""The pages in the order in which a new owner meets them."""
