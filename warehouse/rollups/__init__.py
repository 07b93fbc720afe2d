"""Rollups: counts of the page views of a month in Parquet files, derived from `hits`, for fast reports.

- `schema`: Columns of the three files of a rollup, and the dimensions that it counts.
- `coverage`: Which rollups are on the disk, and which files of `hits` they count.
"""
