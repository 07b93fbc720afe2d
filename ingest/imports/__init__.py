"""Import of access logs: whole files, and logs that grow.

How an import runs. The numbers of a chunk are those of ordinary lines of 218 bytes.

    files ----> source ----> fingerprint, ledger          which lines are new: found by content, not by name
                  |
                  | blocks of 12 MiB, whole lines
                  v
    prefetch: threads parse the blocks of the next chunk while the importer stores one: 2 threads for formats of the
              combined family, 1 for all others
        chunk.parse
          plain lines:  columns ---> request_cache         many lines at once; each distinct value is parsed once
          other lines:  ingest.formats                     the reference parser, line by line
          |
          | 8 blocks are a chunk: 96 MiB, 460,000 lines, 230,000 page views; the last 2 blocks
          | of a log are a chunk of their own
          v
        prepared.preparation, in the same threads:
          rows: user agents and referrers into columns     ingest.classification.pool: 2 child processes
          warehouse.lake.staging: sorted Parquet files     in no transaction yet
                  |
                  v
    importer.LogReader: one transaction a chunk            the ledger's row, and the batch that names the files
    tail uses the same LogReader with one block a poll

With `--processes` or `--on`, workers of `prepared.in_workers` take whole chunks instead of the threads: each worker
parses a chunk, classifies its user agents and writes its files, without `prefetch` and `pool`.

Modules, in the order data passes through them:

- `files`: Opening the files of an import: patterns, standard input, decompression by the first bytes of the file.
- `log_stream`: A log as a stream of unpacked bytes.
- `fingerprint`: Digest of a chunk of a log, with checkpoints by which a truncated copy of the chunk is recognised.
- `ledger`: Ledger of imported logs, which recognises a log by its content, so that no line counts twice.
- `prefetch`: Threads that parse blocks and prepare the next chunk while the importer stores one.
- `chunk`: Parsing of the blocks of a log into page views, and counts of skipped lines.
- `columns`: Parsers of whole blocks by columns, for the formats of the combined family and for JSON logs.
- `request_cache`: Cache of parsed request lines, shared by the chunks of an import.
- `dictionary`: Dictionary-encoded columns of texts: each distinct text is processed once.
- `rows`: Page views of a chunk as rows of the lake, with dictionary-encoded texts.
- `prepared`: Chunks that are ready to be stored, prepared in this process or in workers outside of it.
- `importer`: The log-reading loop, and the import of files from where the ledger ends.
- `tail`: Followed logs, through rotation by renaming and by copytruncate.

Code that exists only for speed, and what it gains in processor time, measured on a log of 1,000,000 ordinary lines
(218 MB, written by `benchmarks.data.generate_log`). `python -m benchmarks import_log` measures the whole process.

    columns.combined, columns.separators
                      1.7 µs a line in chunk.parse at a load of 10; the reference, ingest.formats.clf, takes 61 µs.
                      tests/ingest/imports/columns/test_combined.py compares both on generated lines.
    columns.json_lines
                      10 µs a line of Caddy's log (1,050 bytes) in chunk.parse; the reference takes 20 µs.
                      tests/ingest/imports/columns/test_json_lines.py compares both on generated lines.
    request_cache,    Part of the gain of columns: each distinct text is processed once.
    dictionary
    log_stream        0.06 s to read the log with LogStream._read_exact_lines; 0.34 s with its peek and take, which copy
                      each block twice.
    prefetch, pool    Use the second core: Arrow and the parsers of user agents run in parallel.
    jemalloc          Arrow's allocator in an import: 2.7 s of processor time instead of 3.1 s for the whole import
                      (`api.server.memory.choose_allocators`). Arrow then returns freed memory after 10 s and not 1 s: a
                      quarter fewer page faults, and 0.15 s less in the kernel at a load average of 30.
"""
