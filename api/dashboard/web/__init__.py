"""Parts that all pages share, in the order in which a request passes through them.

- `routes`: the table of pages as routes, and the check of the sender's rights.
- `csrf`: protection of forms against other sites.
- `forms`: posted forms and their faults.
- `cookies`: the cookies of the session and of the time zone.
- `visit`: a request with its user, its project and the viewer's formats.
- `period`: the period of a page of counts.
- `view`: period, filters and moment of a page of counts.
- `links`: addresses of pages.
- `locale`: numbers, days and times in the viewer's locale.
- `assets`: static files.
- `render`: templates, and the headers of every page.
- `error_page`: errors as pages.
"""
