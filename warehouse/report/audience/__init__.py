"""Reports on who reads: AI agents, other bots and people, visitors, and the visits that AI products send.

- `agents`: AI agents and other bots: their views, verdicts and user agents.
- `visitors`: Visitors and visits of a scope: from days of rollups, and from all rows of other days.
- `events`: Events by name, and by the value of a column or property.
- `goals`: Conversions: the visitors of a scope who reached a goal.
- `people`: Views by people and their visitors, by the evidence that a person was there.
- `activity`: Activity of several projects: the views of their last days, and the time of their last hit.
- `requests`: What readers cost: the requests of logs and servers with their bytes and times.
- `errors`: Requests of AI agents and bots that were answered with an error.
- `visits_sent`: Views by people that AI products sent, by the operators of the products, or by page.
"""
