"""Work on the lake: load, compact, erase, rollup, reclassify and recover.

- `recovery`: A data folder that lost a store or part of a table: what is missing, and how to go on without it.
- `load`: Hot batches into the lake, exactly once.
- `compact`: Upkeep of the lake: small files into large ones, partial counts added up, closed days sorted, old files
  removed.
- `erase`: Rows removed for good: a project's, and those of days past the retention.
- `rollup`: Days of `daily_views` counted anew from `hits`.
- `rebuild`: All of `daily_views` made anew from `hits`, a month at a time, while the service runs.
- `reclassify`: Stored hits under today's rules: `hits` rewritten a day at a time, and `daily_views` with it.
- `reclassify_diff`: What other rules would change, or changed: which hits moved from one rule to another, on how many
  paths.
"""
