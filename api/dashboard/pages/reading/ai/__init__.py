"""Pages of AI readers.

- `verdicts`: requests in the names of AI agents by state of the verification, and the evidence.
- `obedience`: violations of the site's robots.txt.
- `operators`: the table of AI operators and their agents.
- `readers`: the AI readers of a project, by operator and purpose.
- `agent`: one AI agent.
"""
