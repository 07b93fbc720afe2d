"""Work on the lake: load, compact, erase, reclassify and recover.

- `catch_up`: Append the hot batches to all tables, exactly once.
- `load`: Load the hot log into the lake, and when a load is due.
- `sorting`: Sorted rows of a partition in new files.
- `compact`: Merge small files, sort them, and remove old ones.
- `rollups`: Write the rollups of the months that need one, and the ranking of paths.
- `upkeep`: All work of a compaction by hand: compact the lake, write its rollups, and delete unused files.
- `erase`: Delete a project, and the days before the retention.
- `reclassification`: Stored hits under the current rules.
- `recovery`: Find what a data folder has lost, and go on without it.
- `scheduler`: The thread that loads the hot log, and runs the tasks that are due.
- `double_counting`: Warnings for projects whose views are counted twice, because pages and logs both send them.
"""
