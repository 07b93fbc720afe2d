"""The reports: one record each, from which routes, tables, downloads and the reference are derived.

- `documents`: the JSON of each report but the coverage.
- `coverage`: the JSON of the coverage.
- `measured`: counts that no source measured; a 0 that was not measured is null.
- `metrics`: visitors and visits beside the views of a report: columns of its table, and fields of its JSON.
- `parameters`: the parameters, each with its JSON schema, by which it is parsed, and the selection that they make.
- `formats`: tables as CSV, Parquet and NDJSON.
- `threads`: the threads in which reports are computed.
- `report`: the record of a report, its handler and its operation, and its responses with their ETag and moment.
- `events`: The report of events by name, property or column.
- `goals`: The report of goals: how often people and AI reached them, and the conversion rate of the visitors.
- `records`: the records: views, series, breakdown, errors and coverage.
"""
