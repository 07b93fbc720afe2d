"""Parsers of whole blocks by columns. Each gives the result of the parser of its format, which is the reference.

- `combined`: Parser of the formats of the combined family.
- `page_views`: The page views among the parsed lines of a block, as columns.
"""
