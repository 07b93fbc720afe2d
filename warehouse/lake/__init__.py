"""The Delta tables: their files, lock, schema versions and staged files.

- `delta_table`: The lake's Delta tables: create them, read their state, append with an offset, replace a partition,
  delete.
- `lock`: Lock of the lake: one process at a time writes into it.
- `delta_log`: Files in the log of a Delta table: which commits and checkpoints exist, and how they are synced.
- `log_repair`: Broken files in the log of a Delta table: which file is at fault, and how to open the table without it.
- `table_schema`: Schema versions of the lake's Delta tables: a table property, and the steps that raise it.
- `staging`: Many rows at once into Parquet files in the folders of both tables, before any commit.
- `readme`: The README in the lake's folder, for people who find the Parquet files before the documentation.
- `agents_file`: The file of the known AI agents beside the lake's tables: the one file of a data folder that is no
  database.
- `registry`: The lake's record of the stores beside it: the hot logs that write into it, and the control database.
"""
