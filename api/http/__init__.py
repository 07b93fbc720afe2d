"""The stages of each HTTP request, and the records that describe an operation.

- `middleware`: request ids, metrics and the response to an uncaught error, around the whole app.
- `headers`: request headers, ETags and Idempotency-Keys.
- `auth`: the API key of a request, checked before the rest of the request is read.
- `cors`: the origins whose pages may send beacons.
- `rate_limit`: the limit on beacons per address and minute.
- `parameters`: query parameters.
- `body`: the request body, with its media type, limits and timeouts.
- `negotiation`: the media type and the coding of the response.
- `problems`: errors as RFC 9457 problems.
- `access_log`: the access log, one line per request.
- `operation`: the record that describes an operation.
"""
