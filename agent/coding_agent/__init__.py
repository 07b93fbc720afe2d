"""Command lines of the coding agents, and parsers of their output.

- `presets`: the known coding agents: their command line, environment and output format.
- `runner`: one turn of a coding agent, from a prompt and a work tree to its result.
- `output`: parsers of the agents' output: session, summary, success or error.
"""
