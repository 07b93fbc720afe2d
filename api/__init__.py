"""The service's doors: HTTP and the command line. Only this package knows HTTP.

In the order a request meets them:

- `settings`: what an operator may set.
- `app`: the routes, and what starts and stops with them.
- `state`: what a worker keeps while it runs.
- `logs`: request ids, the access log and the error log.
- `problems`: every error as an RFC 9457 problem, from one table.
- `keys`: API keys, and who may do what with them.
- `headers`: one header of a request.
- `auth`: the bearer of a request.
- `rate_limit`: beacons of one address, over all workers.
- `body`: a request's body, within its limits.
- `hits`: page views in: server posts, beacons and the pixel.
- `beacon.js`, `script`: the script that sends beacons, and its route.
- `views`: the page-view report out: JSON, CSV and Parquet.
- `parameters`: query parameters, checked.
- `accept`: the media type to answer with.
- `jobs`: agent jobs.
- `classification`: what the rules say of a user agent.
- `health`: healthz, readyz and metrics.
- `metrics`: what is counted.
- `schemas`, `openapi_jobs`, `openapi`, `samples`, `reference`: the description of all this, and its page.
- `upkeep`: the thread that loads and tidies the lake.
- `connections`: limits on HTTP connections.
- `serve`: one HTTP process, or several under a `supervisor`, each of which begins in `http_worker`; `service_lock`: one
  service for each data folder; `shared_counters`: the metrics of all its workers.
- `demo`: a filled service to try.
- `cli`, `service_commands`, `administration`, `agent_commands`, `lake_commands`, `retention_command`, `files_command`,
  `questions`, `log_import`, `log_reading`, `log_terminal`, `control_database`, `data_folder`, `os_errors`, `output`:
  the command line.
"""
