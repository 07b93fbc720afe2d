"""Pages that show who reads.

- `projects`: the projects, each with its readers of the last 30 days.
- `measured`: what the sources of a project counted in a period, and their warnings.
- `timeline`: the chart of a page of counts.
- `tables`: the rows of a table of counts.
- `visitors`: visitors and visits, and the visitors of the last minutes.
- `panels`: the cards of the overview and of AI readers.
- `overview`: the overview of a project, which a share link shows, too.
- `export`: the tables of the overview as CSV and Parquet.
- `path_list`: the paths of a project, and lists of those that only people read, that only AI reads, or that are new to
  AI.
- `path_page`: one path.
- `requests`: requests that are no page views: errors, and what readers cost.
- `ai`: pages of AI readers.
- `why`: why a user agent counts as a person, as AI or as another bot.
"""
