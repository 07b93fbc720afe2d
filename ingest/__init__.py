"""How a page view comes in: from bytes to a durable row.

In the order data passes:

- `post`: the body of a post into hits, or a reason for each row that is rejected.
- `json_fault`: what is wrong with JSON that is none.
- `hit`: what a sender says of a page view, checked.
- `path`: a URL or path into the one spelling that counts.
- `agents`, `agents.toml`: the table of AI agents.
- `rules`, `rules.toml`: the tables of bots, habits of bots, and shapes of browsers and devices.
- `classify`: a user agent into human, ai or bot, and the rule that decided.
- `ruleset`: the version of the rules.
- `device`: a user agent into browser, operating system and device.
- `reader`: a user agent into all of that.
- `page_view`: a hit and its classification into a row of the lake.
- `seen`: event ids and Idempotency-Keys that came before.
- `hotlog`: rows into the hot log, durably, many posts to a commit.
- `log_file`: a log as a stream of its content, unpacked.
- `ledger`: what was read of logs before, told by content.
- `log_format`: which format a log is in, by name or by its first lines.
- `stretch`: what a stretch of a log says, block by block.
- `log_columns`: many plain lines at once into page views.
- `log_memory`: what was said of the requests of lines before.
- `texts`: columns of texts of which each distinct one is looked at once.
- `access_log`, `nginx_format`, `cloudfront`, `json_log`: any other line into a request.
- `log_field`: a field of such a line into text or a time.
- `request`: a request into a hit, or the reason why it is no page view.
- `page_views`: many page views at once into rows of the lake.
- `processes`: user agents told apart by processes of their own.
- `read_ahead`: the blocks of a log, read in threads, as stretches.
- `import_log`: whole logs into the lake, each stretch together with the note that it was read.
- `follow`: logs that grow, through rotation.
- `errors`: what can go wrong, without HTTP.
"""
