"""A lake in an object store instead of a local folder.

- `object_path`: Paths of objects, with the methods of `Path` that the lake uses.
- `probe`: Check that a store refuses the second writer of an object, on which the commits of the tables depend.
- `file_cache`: Cache of the lake's immutable files on the local disk, limited by their size.
- `filesystem`: Files of the lake for DuckDB, through the cache.
"""
