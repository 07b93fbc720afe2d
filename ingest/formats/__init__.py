"""Access-log formats, one module for each family, and their detection.

- `fields`: Decoding of the text and the times of log fields, shared by all formats.
- `request`: Request that a log line records: the result of the parsers of all formats.
- `clf`: Parsers of the formats with quoted fields that Apache and nginx write by default.
- `nginx`: Compiler of an nginx `log_format` into a parser of its lines.
- `cloudfront`: Parser of Amazon CloudFront's standard logs.
- `json_products`: Fields of the lines of JSON logs, by product, and the decoders that check them.
- `json_lines`: Parser of logs with one JSON object per line, as servers and edge networks write them.
- `detect`: Format of a log: by name, by an nginx `log_format`, or detected from the log's first lines.
- `page_filter`: Filter that turns the request of a log line into a hit, or returns the reason why the line is skipped.
"""
