"""Ingestion of page views: from the bytes of a post or an access log to durable rows.

In the order in which data passes through them:

- `hits`: posted hits, from the bytes of a request body to rows of the lake.
- `classification`: classification of user agents: human, AI or bot, the rule that decided, and the device.
- `channels`: channels by which people come to a page: search, AI assistants, advertisements and others.
- `places`: country and language of people, without their addresses.
- `verification`: verification of agents: address lists, reverse DNS and signatures.
- `visitors`: visitors of a day, distinguished without a stored address, and the salts of the days.
- `hotlog`: durable storage of rows, detection of repeated events and posts, and the limit on beacons of several nodes.
- `formats`: access-log formats, and their detection.
- `imports`: import of whole logs into the lake, and of logs while they grow.
- `errors`: errors of this package.
"""
