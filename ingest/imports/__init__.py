"""Whole logs into the lake: files, chunks, columns, and logs that grow.

- `files`: Opening the files of an import: patterns, standard input, decompression by the first bytes of the file.
- `source`: A log as a stream of unpacked bytes.
- `fingerprint`: Digest of a chunk of a log, with checkpoints by which a truncated copy of the chunk is recognised.
- `ledger`: What was read of logs, told by content and never by name, so that nothing of a log is counted twice.
- `chunk`: What a stretch of a log says, block by block: its page views, and what was skipped.
- `columnar`: Many lines of an access log at once, by columns: those that are as plain as nearly all are.
- `request_cache`: What was said of the requests of a log before: each is looked at once.
- `dictionary`: Columns of texts that are dictionary-encoded: each distinct text is looked at once.
- `rows`: Many page views at once into rows of the lake: each distinct text is looked at once, and stands once.
- `prefetch`: The blocks of a log, read in threads and made into stretches, which are stored one by one.
- `importer`: Access logs into the lake: one stretch after the other, each kept together with the note that it was
  read.
- `tail`: Logs that grow: what is added is stored within a second or two, through rotation by renaming or by
  copytruncate.
"""
