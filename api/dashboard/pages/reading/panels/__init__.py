"""Cards of the pages of counts: each has a module with its data, and a template in `templates/panels`.

- `panel`: the record of a card, of which a page has a tuple.
- `views`: the totals of the period, the chart, and the sources under it.
- `dimension`: views by the values of a dimension, such as operators, referrers, countries or browsers.
- `pages`: the pages with most views, and entry and exit pages.
- `sent`: the pages to which AI sends visits.
- `goals`: the goals that people reached.
- `events`: the events, and the files that AI downloaded.
"""
