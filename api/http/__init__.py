"""What every HTTP request passes: problems, authentication, body, parameters, negotiation and the access log.

- `negotiation`: The media type to answer with: https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
- `auth`: Whose request it is: the bearer's key, checked before anything else of the request is looked at.
- `body`: A request's body, within its limits.
- `headers`: What a header of a request says, found without decoding the others: the way in is busy enough for that to
  tell.
- `parameters`: Query parameters, checked: every fault of a request is told at once.
- `problems`: Every error as an RFC 9457 problem (https://www.rfc-editor.org/rfc/rfc9457), from one table.
- `middleware`: request ids, metrics and the response to an uncaught error, around the whole app.
- `access_log`: the access log, one line per request.
- `rate_limit`: Beacons of one address within a minute, counted over all workers.
"""
