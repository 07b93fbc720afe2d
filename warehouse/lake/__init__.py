"""The lake: Delta tables in a folder or an object store, with their lock, schema versions and staged files.

- `roots`: Storage of the lake: a local folder, whose methods are the interface, or a prefix in an object store.
- `remote`: A lake in an object store instead of a local folder.
- `registry`: Registry, in the lake, of the stores beside it: the hot logs that write into the lake, and the control
  database.
- `lock`: Lock of the lake: one process at a time writes into it.
- `table_schema`: Schema versions of the lake's Delta tables: a table property, and the steps that raise it.
- `row_groups`: Row groups of the Parquet files, which are limited in rows and in bytes.
- `staging`: Many rows, written as Parquet files into the folders of the tables before any commit.
- `delta_table`: Delta tables of the lake: create, open, list files, append, delete, vacuum.
- `delta_log`: Files in the log of a Delta table: which commits and checkpoints exist, and how they are synced.
- `log_repair`: Broken files in the log of a Delta table: which file is at fault, and how to open the table without it.
- `rewriting`: New files of a partition, and the commit that replaces the old files by them.
- `agents_file`: Parquet file of the known AI agents, in the lake's folder beside the tables.
- `readme`: README in the lake's folder, for people who find the Parquet files before the documentation.
"""
