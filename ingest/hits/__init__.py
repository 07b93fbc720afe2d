"""Posted hits: from the bytes of a request body to rows of the lake.

- `body`: Parser of request bodies: gzip, then one JSON object, an array or NDJSON, into valid hits and rejected rows.
- `json_errors`: Explanations of JSON that cannot be decoded, in the terms of JSON where msgspec uses those of Python.
- `hit`: Hits, and the check of all their fields: the only module that turns a sender's fields into a hit.
- `url`: Normalisation of URLs and paths to the one spelling under which page views are counted.
- `row`: Rows of the lake (`warehouse.schema.HOT`): a hit, with the columns derived from its user agent and
  referrer.
"""
