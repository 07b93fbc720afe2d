"""The command `import`.

- `command`: The command and its options.
- `reading`: The work of the command: import or follow logs, and print the summary.
- `overlap`: Warnings about views by people that are counted from a log and from the site's pages.
- `progress`: Terminal output of the command: a progress bar, and a table of the summary.
"""
