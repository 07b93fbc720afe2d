"""Views of a project by the values of one dimension, in memory, and counts of them.

- `rows`: Rows of a dimension: of days of a month, or of the hits at the edge of a range.
- `packed`: Rows of the dimensions of a month in little memory.
- `months`: Rows of a dimension of whole months, from the cache or from the files of rollups.
- `page_views`: Page views of the paths of a project in the rollup of a month, and their profiles.
- `path_months`: Rows of a dimension of the views of some paths in whole months, from the page views in rollups.
- `month_rows`: Rows of a dimension that add up to the page views of a report in a month.
- `count`: Counts of such rows by a grouping.
"""
