"""Views of a project by the values of one dimension, in memory, and counts of them.

- `rows`: Rows of a dimension: of a month from a rollup, or of the hits at the edge of a range.
- `months`: Rows of a dimension of whole months, from the cache or from the files of rollups.
- `path_months`: Rows of a dimension of the views of some paths in whole months, from the page views in rollups.
- `count`: Counts of such rows by a grouping.
"""
