"""Reports of page views: views of each path, breakdowns, series and the coverage of the sources.

- `results`: Parameters of a report (project, time range and filters) and its result.
- `cells`: Cells of a snapshot as one SQL relation: rollups, uncovered files, edges of the range, and waiting rows.
- `statements`: Statements over the cells of a snapshot, fast ones in one database and slow ones in another.
- `ranked_pages`: Pages of paths from the ranking: the first ranks are read until no other path can be on the page.
- `pages`: Views by path: a page, all paths in batches, and some paths.
- `time_buckets`: Time buckets of a series: hours, days, weeks and months of a time zone.
- `series`: Series: page views by time buckets, with a row of zeros for each bucket without a view.
- `sources`: When each source counted, and which readers: what no source could see is unknown, and not 0.
- `source_coverage`: Coverage of a project by its sources: the first and last hit of each source, and the days between
  without a hit.
- `coverage_report`: Which sources sent hits, and when: for the coverage of a project, and for what reports could count.
- `open_end`: End of a time range that a request leaves open.
- `audience`: What AI agents, other bots and people read, and the visits that AI products send.
- `reports`: Reports of one process, all but those of errors: see `audience.errors`. `api` calls these two modules, and
  uses types and constants of the others.
"""
