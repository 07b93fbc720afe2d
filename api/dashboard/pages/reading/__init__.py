"""Pages that show who reads.

- `why`: why a user agent counts as a person, as AI or as another bot.
"""
