"""A lake in an object store instead of a local folder.

- `object_path`: Storage of a lake in an object store.
- `file_cache`: Cache of the lake's immutable files on the local disk, limited by their size.
- `filesystem`: Files of the lake for DuckDB, through the cache.
"""
