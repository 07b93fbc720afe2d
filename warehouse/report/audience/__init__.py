"""Reports on who reads: AI agents, other bots and people, and the visits that AI products send.

- `agents`: AI agents and other bots, each with its views and the day of its last view.
- `activity`: Activity of several projects: the views of their last days, and the time of their last hit.
- `user_agents`: Most frequent user agents of people, AI agents or other bots, each with the rule that decided.
- `verdicts`: Verdicts of the verification: requests in the names of agents by state, and the evidence.
- `errors`: Requests of AI agents and bots that were answered with an error.
- `visits_sent`: Views by people that AI products sent, by the operators of the products.
"""
