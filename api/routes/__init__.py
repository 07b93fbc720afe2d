"""The routes of the HTTP API: handlers, and for each an `Operation` record, from which the reference is made.

- `hits`: posts of page views, by a server with an API key.
- `beacon`: page views from pages, without an API key.
- `script`: the script that sends beacons.
- `goals`: list, add and remove goals.
- `classify`: the classification of a user agent.
- `prompts`: prompts that create or continue an agent job.
- `jobs`: get, list, cancel and archive agent jobs.
- `job_history`: the prompts and the log of an agent job.
- `health`: liveness, readiness, metrics and the OpenAPI document.
"""
