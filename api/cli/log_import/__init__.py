"""The command `import`.

- `command`: The command and its options.
- `reading`: The work of the command: import or follow logs, and print the summary.
- `progress`: Terminal output of the command: a progress bar, and a table of the summary.
"""
