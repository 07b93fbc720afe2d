"""Page views in: from the bytes of a post or a log to durable rows.

In the order data passes:

- `hits`: the body of a post into checked hits, and a hit into a row of the lake.
- `classification`: a user agent into human, AI or bot, the rule that decided, and the device.
- `hotlog`: the durable append of rows, and the detection of repeated events and posts.
- `formats`: the line formats of access logs, and their detection.
- `imports`: whole logs into the lake, and logs that grow.
- `errors`: errors of this package, without HTTP.
"""
