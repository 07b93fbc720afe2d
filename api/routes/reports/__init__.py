"""The reports over HTTP: page views of each path, breakdowns, series, errors and the coverage of the sources.

- `views`: the export of page views.
- `series`: the views by hour, day, week or month.
- `breakdown`: the views by the values of a dimension.
- `errors`: the errors that AI agents and bots got.
- `coverage`: the sources of hits and their missing days.
- `threads`: the threads in which reports are computed.
- `measured`: how much of the range was measured; a 0 that was not measured is null.
- `responses`: the responses of all reports, with the headers for caching and for the moment.
- `tables`: tables as CSV, Parquet and NDJSON.
- `reference`: parts of the API reference that the reports share.
"""
