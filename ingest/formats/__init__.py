"""Access-log formats, one module each, and their detection.

- `fields`: A field of a log line into text or into a time: what the formats of logs have in common.
- `request`: The request that a log line records, which every format parses its lines into.
- `clf`: A line of a server's access log, in the formats that are text with quotes, into a request.
- `nginx`: An nginx `log_format` into a parser of its lines.
- `cloudfront`: A line of Amazon CloudFront's standard log into a request.
- `json_lines`: A line of a log that is one JSON object, as a server or an edge writes it, into a request.
- `detect`: Which format a log is in, by name, by an nginx `log_format`, or by its first lines.
- `page_filter`: The filter that turns the request of a log line into a hit, or names the reason why it is not a page
  view.
"""
