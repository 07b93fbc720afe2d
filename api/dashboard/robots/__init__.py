"""The robots.txt of a site, which its owner pastes: nothing is fetched.

- `texts`: the texts of the projects, in the control database.
- `rules`: what a text allows an AI agent.
"""
