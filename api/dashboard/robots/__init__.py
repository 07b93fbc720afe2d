"""The robots.txt of a site. The owner of the site pastes the text: nothing is fetched.

- `texts`: the texts of the projects, in the control database.
- `rules`: what a text allows an AI agent.
"""
