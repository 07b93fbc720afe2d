"""Parsers of whole blocks by columns. Each gives the result of the parser of its format, which is the reference.

- `combined`: Parser of the formats of the combined family.
- `json_lines`: Parser of the logs with one JSON object per line.
- `separators`: Positions of the separators of a block.
- `asked`: All requests of a log, as a table from which they are counted.
- `page_views`: Requests for pages among the parsed lines of a block, as columns, for both parsers.
"""
