"""Reports of page views: views of each path, breakdowns, series and the coverage of the sources.

- `filters`: Parameters of a report (project, time range and filters) and its result.
- `time_buckets`: Time buckets of a series: hours, days, weeks and months of a time zone.
"""
