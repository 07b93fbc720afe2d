"""Rollups: counts of the page views of a month in Parquet files, derived from `hits`, for fast reports.

- `schema`: Columns of the six files of a rollup, and the dimensions that it counts.
- `coverage`: Which rollups are on the disk, and which files of `hits` they count.
- `counts`: SQL of the counts of a rollup: partial counts of `hits` and of the rollup before it, added up.
- `writer`: Write the rollup of a month, from its files of `hits` and, where it is valid, from the rollup before it.
- `sorted_rows`: Rows of a Parquet file of a rollup whose first columns have wanted texts.
- `check`: Check of a rollup against the files of `hits` that it counts.
"""
