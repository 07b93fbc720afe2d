"""How people come to a page: by search, AI assistant, advertisement, another site and so on.

- `ai_referrers`: Table of the hosts and campaigns of AI products in `ai_referrers.toml`: which operator sent a visit.
- `channels`: Channels by which people come to a page, from the tables `channels.toml` and `ai_referrers.toml`.
"""
