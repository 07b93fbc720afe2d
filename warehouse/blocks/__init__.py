"""Counts of page views by path in memory, from which the views report is made.

- `cumulative`: Cumulated counts in little memory.
- `months`: Daily views of the paths of a project in one month.
- `rollup_rows`: Rows of a project in the Parquet files of a rollup.
- `paths`: Ids of the paths of a project.
- `project`: Views of the paths of a project in the months that have a rollup.
- `selection`: Choice of the paths, sources and traffic that a report counts.
- `listing`: Choice and order of the paths that a report lists.
- `agents`: Daily views of the paths of a project in one month by some readers, such as one AI agent.
- `ranking`: Order of paths: most views first, then by path in byte order.
- `sums`: Views of each path in a time range, and their order in a report.
- `hits_files`: Counts and the last hit of a project in each file of `hits`.
- `hot`: Hot rows of a project as arrays.
"""
