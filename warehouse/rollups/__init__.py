"""Rollups: counts of the page views of a month in Parquet files, derived from `hits`, for fast reports.

- `catalog`: Which rollups are on the disk, and which files of `hits` they count.
- `days`: Days of a snapshot: days that rollups count, and the rows of other days.
- `cubes`: Cubes of a rollup: the SQL of their rows, and the Parquet files to which these are written.
- `writer`: Write the rollup of a month, from its files of `hits` and, where it is valid, from the rollup before it.
- `ranked`: Paths of each project, ranked by the views of all months, for pages of the most viewed paths.
- `check`: Check of a rollup against the files of `hits` that it counts.
"""
