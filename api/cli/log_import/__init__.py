"""The command `import`.

- `command`: The command and its options: imports access logs once, or follows them.
- `reading`: The work of the command: import or follow logs, and print the summary.
- `overlap`: Warnings of an import whose log has views by people that the site's pages send, too.
- `progress`: Terminal output of the command: a progress bar, and a table of the summary.
"""
