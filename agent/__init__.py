"""Agent jobs: a prompt becomes a pull request. In the order a turn of a coding agent goes:

- `runner`: one turn, from a prompt and a work tree to what the agent says it did.
- `presets`: the coding agents by name: how each is started, continued and believed.
- `sandbox`: the box that it runs in; `watchdog`: what all of its processes use together.
- `gateway`: the box's only way out, which adds the model key.
- `scratch`: the folder of a turn that its agent may read.
- `inside`: what runs first in the box, and forwards the agent's requests to the gateway.
- `process`: a program that ends when it must.
- `record`: what an agent's output says of its turn.
- `errors`: what can go wrong, without HTTP.
"""
