"""Command lines of the coding agents, and parsers of their output.

- `presets`: The known coding agents: their command line, environment and output format.
- `runner`: One turn of a coding agent, from a prompt and a work tree to its result.
- `output`: Parsers of the agents' output: session, summary, success or error.
"""
