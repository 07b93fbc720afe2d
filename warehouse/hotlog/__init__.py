"""Batches that wait for the lake.

- `batches`: The hot log's table of batches: accepted hits that are not in the lake yet.
- `schema_steps`: Changes of the hot log's schema, in the order in which older files take them: see
  `warehouse.migrations`.
- `refusals`: Deleted projects, of which the hot log stores nothing any more.
- `synced`: The hot log's table of how far each Delta table is synced: see `warehouse.integrity.durability`.
"""
