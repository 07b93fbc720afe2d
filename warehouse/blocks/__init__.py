"""Counts of page views by path in memory, from which the views report is made.

- `cumulative`: Cumulated counts in little memory.
- `months`: Daily views of the paths of a project in one month.
- `paths`: Ids of the paths of a project.
- `ranking`: Order of paths: most views first, then by path in byte order.
"""
