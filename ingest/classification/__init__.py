"""A user agent into traffic, agent, operator, purpose, browser, operating system and device.

- `agents`: The AI agents named in `agents.toml`, read once at import, and the look-up of one in a user agent.
- `rules`: The rules of `rules.toml`: who a user agent is that names no AI agent.
- `ruleset`: The version of the rules: a hash of all data that decides who a user agent is, and of nothing else.
- `classifier`: Who asked for a page: a person, an AI agent or another bot, and the rule that says so.
- `device`: The browser, operating system and kind of device a user agent speaks of.
- `user_agent`: Attributes of user agents: the module that joins the answers of the rules and of the parsers.
- `pool`: User agents told apart by processes of their own: in threads the parsers would take turns at the
  interpreter.
- `user_agent_cache`: The cache of the columns that user agents decide, for posted hits and for imported logs.
"""
