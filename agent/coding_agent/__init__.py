"""The coding agents: how each is started, and how its output is read.

- `presets`: The coding agents that need no more than their name: how each is started, continued and believed.
- `runner`: One turn of a coding agent: from a prompt and a work tree to what it says it did, or to the reason why it
  did not.
- `output`: What an agent's output says of its turn: its session, its last words, and whether it holds that it is
  done.
"""
