"""Classification of user agents: traffic, agent, operator, purpose, rule, browser, operating system and device.

- `agents`: Table of the AI agents in `agents.toml`, and the search for an agent's token in a user agent.
- `rules`: Tables of the rules: the rows of `rules.toml`, and the patterns of crawler-user-agents that are used.
- `accept`: Rules about the Accept header of a request: the media types that AI agents ask for and no browser does.
- `device`: Browser, operating system and device type of a user agent.
- `ruleset`: Version of the rules: a hash of all data that decides a classification, and of nothing else.
- `classifier`: Classification of user agents as people, AI agents or other bots, with the rule that decided.
- `explain`: Explanation of a classification: the steps that the classifier tries, up to the one that decides.
- `user_agent`: Attributes of user agents: the answers of the rules, joined with those of the parsers.
- `pool`: Classification of user agents in child processes, for imports.
- `user_agent_cache`: Cache of the columns of a hit that depend only on its user agent, for posted hits and for imported
  logs.
"""
