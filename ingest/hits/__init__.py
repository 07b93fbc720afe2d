"""A posted body into checked hits, and a hit into a row of the lake.

- `url`: A URL or path into the one spelling under which its views count.
- `hit`: What a sender says of a page view, and the hit that it makes: the one place where a hit's fields are checked.
- `body`: The body of a post into hits.
- `json_errors`: What is wrong with JSON that does not decode, in the words of JSON where the decoder's are those of
  Python.
- `row`: A hit and what its user agent and referrer say, into a row of the lake (the columns of
  `warehouse.schema.HOT`).
"""
