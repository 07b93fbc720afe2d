"""All pages with the rights that they require."""

from api.dashboard.pages.entry import account, sign_in, welcome
from api.dashboard.pages.reading import why
from api.dashboard.pages.settings import keys, setup
from api.dashboard.web.routes import Page

PAGES: tuple[Page, ...] = (*sign_in.PAGES, *welcome.PAGES, *account.PAGES, *setup.PAGES, *keys.PAGES, *why.PAGES)
"""The pages in the order in which a new owner meets them."""
