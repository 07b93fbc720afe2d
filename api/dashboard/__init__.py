"""The dashboard: pages rendered on the server, which also work without JavaScript.

- `robots`: the robots.txt of a site, and what it allows AI agents.
- `web`: parts that all pages share: rights, forms, addresses, formats and templates.
- `charts`: charts as SVG, from numbers.
- `pages`: the pages, one module each.
- `pages_table`: all pages with the rights that they require.
"""
