"""Rollups: counts of the page views of a month in Parquet files, derived from `hits`, for fast reports.

- `catalog`: Which rollups are on the disk, and which files of `hits` they count.
- `cubes`: SQL of the cubes of a rollup: the page views of a month by day and by the columns of the cube.
- `rows`: Rows of DuckDB's statements, written to a Parquet file in batches.
- `writer`: Write the rollup of a month, from its files of `hits` and, where it is valid, from the rollup before it.
- `ranked`: Paths of each project, ranked by the views of all months, for pages of the most viewed paths.
- `check`: Check of a rollup against the files of `hits` that it counts.
"""
