"""Reports of page views: views of each path, breakdowns, series and the coverage of the sources.

- `results`: Parameters of a report (project, time range and filters) and its result.
- `cells`: Cells of a snapshot as one SQL relation: rollups, uncovered files, edges of the range, and waiting rows.
- `statements`: Statements over the cells of a snapshot, fast ones in one database and slow ones in another.
- `scope`: Scope of a query: the range that it counts, under the source policy of its project.
- `ranked_pages`: Pages of paths from the ranking: the first ranks are read until no other path can be on the page.
- `pages`: Views by path: a page, all paths in batches, and some paths.
- `time_buckets`: Time buckets of a series: hours, days, weeks and months of a time zone.
- `series`: Series: page views by time buckets, with a row of zeros for each bucket without a view.
- `measured`: Times in which people, AI and other bots were counted, and when a source is silent.
- `source_warnings`: Warnings about the sources of a project, as records that each surface renders.
- `source_coverage`: Coverage of a project by its sources: when each sent hits, and what its reports could count.
- `audience`: What AI agents, other bots and people read, and the visits that AI products send.
- `reports`: Reports of one process, all but those of errors: see `audience.errors`. `api` calls these two modules, and
  uses types and constants of the others.
"""
