"""The routes of the HTTP API, one module for each resource.

- `hits`: Page views in: a server's post with a key, a page's beacon without one, and the pixel.
- `views`: The page-view report out: a page of it as JSON, or every path as CSV or Parquet.
- `jobs`: Agent jobs over HTTP: create, follow up, read, list, cancel, archive, and a job's log.
- `classify`: What the rules say of a user agent, over HTTP.
- `beacon`: The script that a site's pages load to send beacons.
- `health`: Whether the service lives, whether it can take and count hits, and what it has counted.
"""
