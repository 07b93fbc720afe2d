"""Views of the paths of a project on whole UTC days.

- `profile_views`: Views of paths in a month by the page views of some profiles.
- `from_hits`: Reports by path of projects whose paths do not fit into memory.
- `block_months`: Months of a block, in the cache, and the views of a report on some of their days.
"""
