"""Agent jobs: a prompt becomes a pull request. Nothing of it stands yet."""
