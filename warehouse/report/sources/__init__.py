"""What the sources of a project measured: a count of readers whom no source could see is unknown, and never 0.

- `days`: days on which each source sent hits.
- `silence`: spans of time in which a source counted, without those in which it had fallen silent.
- `warnings`: warnings about sources, as records.
- `measured`: spans of time in which people, AI and other bots were counted, under the source policy.
"""
