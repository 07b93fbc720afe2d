"""How people come to a page: the AI product, the search, the advertisement or the site that sent them.

- `ai_referrers`: Table of the hosts and campaigns of AI products in `ai_referrers.toml`: which operator sent a visit.
- `channels`: Channels by which people come to a page, from the tables `channels.toml` and `ai_referrers.toml`.
"""
