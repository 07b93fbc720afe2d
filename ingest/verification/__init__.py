"""Verification of hits: whether an agent is the one that its user agent names.

- `verdict`: Answer of the verification of one hit.
- `addresses`: IP addresses and prefixes as numbers.
- `address_lists`: Address lists that operators publish, as dated files.
- `refresh`: Download of the operators' address lists, which happens only when the owner asks for it.
- `address_check`: Check of a client's address against the address lists of the agent that it claims to be.
- `daemon_pool`: Pool of daemon threads, for calls that cannot be interrupted, such as those of the system's resolver.
- `reverse_dns`: Forward-confirmed reverse DNS, which is off by default.
- `signature_agents`: Table of the signing agents in `signature_agents.toml`.
- `public_keys`: Public keys of key directories.
- `directories`: Key directories of signing agents, fetched in the background and cached.
- `signatures`: Check of Web Bot Auth signatures.
- `verifier`: Verification of hits by their evidence: the verdicts of all checks, in their order of precedence.
"""
