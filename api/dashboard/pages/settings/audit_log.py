"""The audit log: who signed in or failed to, and who changed what."""

from starlette.responses import Response

from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import Visit
from warehouse.control import audit

PAGE_ENTRIES = 50
PATH = "/account/audit"


def show(visit: Visit) -> Response:
    pages = max(-(-audit.count(visit.state.control) // PAGE_ENTRIES), 1)
    number, fault = visit.page_of(pages)
    return render.page(
        visit,
        "settings/audit_log.html",
        title="Audit log",
        status=400 if fault else 200,
        fault=fault,
        entries=audit.entries(visit.state.control, (number - 1) * PAGE_ENTRIES, PAGE_ENTRIES),
        page_number=number,
        pages=pages,
        path=PATH,
        days=audit.RETENTION_DAYS,
        maximum=audit.ENTRIES_MAX,
        failures=audit.FAILURES,
        failures_maximum=audit.FAILURES_MAX,
    )


PAGES = (Page("GET", PATH, show, Access.OWNER),)
