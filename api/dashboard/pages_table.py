"""All pages with the rights that they require."""

from api.dashboard.web.routes import Page

PAGES: tuple[Page, ...] = ()
"""The pages in the order in which a new owner meets them."""
