"""Parsers of whole blocks by columns. Each gives the result of the parser of its format, which is the reference.

- `combined`: Parser of the formats of the combined family.
- `json_lines`: Parser of the logs with one JSON object per line.
- `separators`: Positions of the separators of a block, shared by these parsers.
- `times`: Times of a column, in any of the forms of log formats.
- `page_views`: The page views among the parsed lines of a block, shared by these parsers.
"""
