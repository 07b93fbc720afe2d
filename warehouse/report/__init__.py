"""Reports of page views: views of each path, breakdowns, series and the coverage of the sources.

- `filters`: Parameters of a report (project, time range and filters) and its result.
- `dimensions`: Views of a project by the values of one dimension, in memory, and counts of them.
- `grouping`: Groupings of page views: what breakdowns and series count by, over `hits` and over the rows of rollups.
- `hit_counts`: Counts of page views, grouped by an expression: over rollups, files of `hits` and hot rows.
- `breakdown`: Breakdowns: page views by the values of a dimension, most views first.
- `time_buckets`: Time buckets of a series: hours, days, weeks and months of a time zone.
- `series`: Series: page views by time buckets, with a row of zeros for each bucket without a view.
- `sources`: When each source counted, and which readers: what no source could see is unknown, and not 0.
- `source_coverage`: Coverage of a project by its sources: from when to when each source sent hits, and the days on
  which it sent none.
- `open_end`: End of a time range that a request leaves open.
- `by_path`: Views of the paths of a project on whole UTC days.
- `path_reports`: Views by path, from the blocks of `warehouse.blocks`.
- `read_ahead`: Results that are read before a request needs them.
- `grouped`: Reports that count by any grouping: breakdowns, series and the coverage of the sources.
- `audience`: What AI agents, other bots and people read, and the visits that AI products send.
- `reports`: Reports of one process, all but those of errors: see `audience.errors`. `api` calls these two modules, and
  uses types and constants of the others.

`Coverage` is the coverage of files by rollups, of `warehouse.rollups.coverage`. `SourceCoverage` is the coverage of a
project by the sources of its hits, which the API calls coverage.
"""
