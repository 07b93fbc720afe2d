"""Posted hits: from the bytes of a request body to rows of the lake.

- `body`: Parser of request bodies: gzip, then one JSON object, an array or NDJSON, into valid hits and rejected rows.
- `json_errors`: Explanations of decoding errors, with the JSON names of types in place of the Python names of msgspec.
- `hit`: Hits, and the validation of their fields: the only module that creates a hit from the fields of a post.
- `event`: Posted events: hits with a name and properties.
- `evidence`: Evidence of a hit: the client's address and headers, used in memory and never stored.
- `url`: Normalisation of URLs and paths to the one spelling under which page views are counted.
- `parameters`: Query parameters of the addresses of pages that have columns in `hits`.
- `path_format`: Format of a response by its path, for requests whose sender did not send a format.
- `classes`: Classes of hits that the user agent does not decide alone: requests for Markdown, signed and
  spoofed agents.
- `claims`: Verification of the agents that the user agents of a log claim to be.
- `row`: Rows of the lake (`warehouse.schema.HOT`): a hit, with the columns derived from its user agent and
  referrer.
"""
