"""What AI agents, other bots and people read, and the visits that AI products send.

- `agents`: AI agents and other bots, each with its views and the day of its last view.
- `activity`: Activity of several projects: the views of their last days, and the time of their last hit.
- `user_agents`: Most frequent user agents of people, AI agents or other bots, each with the rule that decided.
- `first_days`: First day on which AI read each of some paths.
"""
