"""Counts of page views by path in memory, from which the views report is made.

- `rollup_rows`: Rows of a project in the Parquet files of a rollup.
- `paths`: Ids of the paths of a project.
- `cumulative`: Cumulated counts in little memory.
- `months`: Daily views of the paths of a project in one month.
- `agents`: Daily views of the paths of a project in one month by some readers, such as one AI agent.
- `project`: Views of the paths of a project in the months that have a rollup.
- `hits_files`: Counts and the last hit of a project in each file of `hits`.
- `hot`: Hot rows of a project as arrays.
- `selection`: Choice of the paths, sources and traffic that a report counts.
- `sums`: Views of each path in a time range, and their order in a report.
- `listing`: Choice and order of the paths that a report lists.
- `ranking`: Order of paths: most views first, then by path in byte order.
"""
